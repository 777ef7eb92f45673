"""The join graph: which streams share which keys.

Equalities are transitive, so the attributes they tie together form *key classes*; a result is
exactly a choice of one tuple per stream whose attributes agree in every class. Seen this way a
join over any mixture of attribute pairs is a natural join over its classes: two streams are
neighbours when they share a class, whether or not the user wrote that very equality.

A stream may have several attributes in one class (`a.x = b.k AND a.y = b.k`): then only its rows
with `x = y` can ever be in a result, which the engine checks as a row arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from plait.errors import DisconnectedJoin, TypeMismatch
from plait.query.expr import Column
from plait.query.keys import common_type
from plait.query.names import quoted

if TYPE_CHECKING:
    from plait.query.query import Equality, Stream


@dataclass(frozen=True, slots=True)
class KeyClass:
    """Attributes that are equal in every result, and the type they are compared in.

    `columns[i]` are the attributes of stream i in the class, none or one or several.
    """

    type: pa.DataType
    columns: tuple[tuple[str, ...], ...]

    @property
    def streams(self) -> frozenset[int]:
        """The streams that have an attribute in the class."""
        return frozenset(i for i, names in enumerate(self.columns) if names)


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """Key classes, and the streams that share them."""

    size: int
    classes: tuple[KeyClass, ...]

    def classes_of(self, stream: int) -> tuple[int, ...]:
        """The classes that a stream has an attribute in, ascending."""
        return tuple(k for k, c in enumerate(self.classes) if c.columns[stream])

    def shared(self, left: Iterable[int], right: Iterable[int]) -> tuple[int, ...]:
        """List the classes that two sets of streams share."""
        a, b = frozenset(left), frozenset(right)
        return tuple(k for k, c in enumerate(self.classes) if c.streams & a and c.streams & b)

    def neighbours(self, stream: int) -> frozenset[int]:
        """The streams that share a class with `stream`."""
        others = (c.streams for c in self.classes if c.columns[stream])
        return frozenset().union(*others) - {stream}

    def connected(self, streams: Iterable[int]) -> bool:
        """Whether the streams are connected by the classes that they share among themselves."""
        return len(self.components(streams)) <= 1

    def components(self, streams: Iterable[int]) -> tuple[frozenset[int], ...]:
        """Divide the streams into connected components, in the order of their lowest index."""
        left = set(streams)
        groups = []
        while left:
            group: set[int] = set()
            frontier = frozenset({min(left)})
            while frontier:
                group |= frontier
                reach = frozenset().union(*(self.neighbours(i) for i in frontier))
                frontier = (reach & left) - group
            left -= group
            groups.append(frozenset(group))
        return tuple(groups)


@lru_cache(maxsize=256)
def join_graph(streams: tuple[Stream, ...], equalities: tuple[Equality, ...]) -> JoinGraph:
    """Build the graph of the equalities, or raise the error that names what is wrong with it."""
    members: list[set[Column]] = []
    for e in equalities:
        touching = [group for group in members if e.left in group or e.right in group]
        merged = {e.left, e.right}.union(*touching)
        members = [group for group in members if group not in touching]
        members.append(merged)
    position = {s.name: i for i, s in enumerate(streams)}
    classes = sorted(
        (_key_class(streams, position, group) for group in members),
        key=lambda c: tuple((not names, names) for names in c.columns),
    )
    return JoinGraph(len(streams), tuple(classes))


def check_connected(streams: Sequence[Stream], graph: JoinGraph) -> None:
    """Refuse streams that share no key with the others."""
    groups = graph.components(range(len(streams)))
    if len(groups) > 1:
        first, second = ([streams[i].name for i in sorted(g)] for g in groups[:2])
        raise DisconnectedJoin(
            f"nothing joins {', '.join(first)} with {', '.join(second)}: "
            "the result would be their cross product",
            remedy=f"add an equality such as {quoted(first[0])}.key = {quoted(second[0])}.key",
        )


def _key_class(streams: Sequence[Stream], position: dict[str, int], group: set[Column]) -> KeyClass:
    columns: list[list[str]] = [[] for _ in streams]
    members = sorted(group, key=lambda c: (c.stream, c.name))
    for column in members:
        columns[position[column.stream]].append(column.name)
    types = [streams[position[c.stream]].type_of(c.name) for c in members]
    common = common_type(types)
    if common is None:
        named = ", ".join(f"{c} ({t})" for c, t in zip(members, types, strict=True))
        raise TypeMismatch(
            f"these attributes are to be equal, but have no common type: {named}",
            remedy="cast them to one type",
        )
    return KeyClass(common, tuple(tuple(names) for names in columns))

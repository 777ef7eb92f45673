"""The header: all that a node knows beside the rows of its windows, as one value.

With the rows in the store, a node is rebuilt from it. It is written with every batch, so it is of
constant size. Its format has a version: a header of an earlier one is read, one of a later version
is refused.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from plait.codec import from_plain, stored, to_plain
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.errors import CheckpointDamaged, CheckpointMismatch, SourceError
from plait.groups.moves.moving import Moving
from plait.node.epochs import Followed
from plait.node.time_outliers import TimeOutlier
from plait.plan.jtree import Join, Leaf
from plait.plan.routed import Plan
from plait.plan.serde import from_dict, to_dict
from plait.query.query import Query

VERSION = 4
"""Headers of version 1 did not say it; those of version 2 knew no moves of partition groups; those
of version 3 had no floors, and their newest times may be those that watermarks would follow from.
"""

UNSAID = "unsaid"


@dataclass(frozen=True, slots=True)
class Header:
    """What a node knows after a batch."""

    newest: tuple[int, ...]
    """The newest event time of each stream."""
    batch: int = 0
    """How many batches it has joined."""
    token: str = ""
    """The name of this very state; empty before the first batch."""
    heard: tuple[int, ...] | None = None
    """When each stream was last heard of, in milliseconds."""
    total: dict[str, Any] = field(default_factory=dict)
    """Sums over all reports so far."""
    followed: Followed = field(default_factory=Followed)
    plan: dict[str, Any] | None = None
    """The tree of joins that it runs; None for a router, which follows from the query."""
    asked: dict[str, Any] | str | None = UNSAID
    """The plan that the query was started with; version 0.1 did not always say."""
    loop: dict[str, Any] | None = field(default=None, metadata=stored("adapt"))
    """What the adaptive loop knows."""
    checksum: int | None = field(default=None, metadata=stored("state"))
    """Of which segments there are, and of the question that they are there for."""
    unwritten: dict[str, int] = field(default_factory=dict)
    """Reports and event logs that could not be written, and that no report has told yet."""
    notes: tuple[str, ...] = ()
    """What the next report is to tell, in sentences."""
    moving: Moving = field(default_factory=Moving)
    floors: tuple[int, ...] | None = None
    """The time below which the watermark of each stream does not go; None: they have none."""
    far_ahead: dict[str, TimeOutlier] = field(default_factory=dict)
    delivered: int = -1
    """The last batch, as the host counts, of which rows went to files of a table; -1: none."""

    @classmethod
    def new(cls, query: Query) -> Header:
        """Before the first batch."""
        return cls((BEFORE_ALL_TIMES,) * len(query.streams))

    @classmethod
    def joining(cls, others: Collection[Header]) -> Header:
        """Of a node that joins in where these are: with their watermarks and routing table."""
        newest = _furthest(header.newest for header in others)
        assert newest is not None, "there are others"
        return cls(
            newest,
            heard=_furthest(header.heard for header in others),
            moving=Moving(max(header.moving.table for header in others)),
            floors=_furthest(header.floors for header in others),
        )

    def goes_on(self, plan: Plan) -> bool:
        """Whether the query was started with this plan, as before."""
        return self.asked == UNSAID or self.asked == stored_plan(plan)

    def running(self, query: Query, plan: Plan) -> Plan:
        """The plan to go on with: the one that ran, unless another one is asked for now."""
        if self.plan is None or not self.goes_on(plan):
            return plan
        return from_dict(self.plan, query)

    def to_json(self) -> str:
        """For the store."""
        moving = None if self.moving.at_rest else to_plain(self.moving)
        fields = to_plain(self) | self.followed.to_dict() | {"moving": moving}
        return json.dumps({"version": VERSION, **fields})

    @classmethod
    def from_json(cls, text: str, query: Query | None = None) -> Header:
        """The inverse of `to_json`; a header of version 1 lacks some fields.

        >>> from plait.testing.examples import clique
        >>> header = Header((5, 7), batch=3, token="t", heard=(1, 2), notes=("a note",))
        >>> Header.from_json(header.to_json(), clique(2)) == header
        True
        """
        try:
            given = json.loads(text)
            version = given.get("version", 1)
            if version > VERSION:
                raise CheckpointMismatch(
                    f"the state of a node was written by a later version of Plait (its header has "
                    f"version {version}, this one knows {VERSION})",
                    remedy="run the query with the version that wrote it",
                )
            given["followed"] = to_plain(Followed.of(given))
            given["moving"] = given.get("moving") or {}
            header = from_plain(cls, given, any_version=True)
        except (ValueError, TypeError, AttributeError, SourceError) as error:
            raise CheckpointDamaged(
                f"the header in the state of a node cannot be read: {error}",
                remedy="put the files of the state back from a copy of the checkpoint, or begin "
                "with a new checkpoint location",
            ) from error
        counts = {len(v) for v in (header.newest, header.floors, header.heard) if v is not None}
        if query is not None and counts != {len(query.streams)}:
            raise CheckpointDamaged(
                f"the header in the state of a node is about {_listed(counts)} streams, the "
                f"query has {len(query.streams)}",
                remedy="begin with a new checkpoint location",
            )
        return header


def stored_plan(plan: Plan) -> dict[str, object] | None:
    """A tree of joins in the types of JSON; a router follows from the query."""
    return to_dict(plan) if isinstance(plan, Join | Leaf) else None


def _furthest(given: Iterable[tuple[int, ...] | None]) -> tuple[int, ...] | None:
    """The largest value of each stream; None if nobody has any."""
    known = [values for values in given if values is not None]
    return tuple(map(max, zip(*known, strict=True))) if known else None


def _listed(counts: Iterable[int]) -> str:
    return " or ".join(map(str, sorted(counts)))

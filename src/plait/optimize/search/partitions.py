"""Partitions of a stream set into connected parts."""

from __future__ import annotations

from collections.abc import Iterator

from plait.optimize.model import Model
from plait.optimize.search.binary_dp import connected_sets


class Partitions:
    """Partitions of the connected sets of a model.

    >>> from plait.testing.models import chain_model
    >>> [[f"{p:03b}" for p in parts] for parts in Partitions(chain_model()).of(0b111)]
    [['001', '010', '100'], ['001', '110'], ['011', '100']]
    """

    def __init__(self, model: Model) -> None:
        self.sets = tuple(connected_sets(model))
        self.by_lowest: dict[int, list[int]] = {1 << i: [] for i in range(model.size)}
        for streams in self.sets:
            self.by_lowest[streams & -streams].append(streams)

    def of(self, streams: int) -> Iterator[tuple[int, ...]]:
        """List the partitions of a set into connected parts, by ascending lowest stream."""
        for block in self.by_lowest[streams & -streams]:
            if block & ~streams == 0 and block != streams:
                for rest in self._cover(streams ^ block):
                    yield block, *rest

    def _cover(self, streams: int) -> Iterator[tuple[int, ...]]:
        if not streams:
            yield ()
            return
        for block in self.by_lowest[streams & -streams]:
            if block & ~streams == 0:
                for rest in self._cover(streams ^ block):
                    yield block, *rest

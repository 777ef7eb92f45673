"""Turn combined tuples into result rows: gather the columns once and compute the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.engine.columns import TooManyBytes
from plait.engine.states import BaseWindow, Tuples
from plait.kernels.jit import Bytes
from plait.query.evaluate import evaluate
from plait.query.expr import Column, Expr
from plait.query.query import Query


class ResultRows:
    """Computes the selected columns of tuples, or a condition on them."""

    def __init__(self, query: Query, bases: Sequence[BaseWindow]) -> None:
        self._query = query
        self._bases = bases
        self._position = {name: i for i, name in enumerate(query.names)}
        self.schema = query.schema

    def batches(self, tuples: Tuples) -> Iterator[pa.RecordBatch]:
        """Yield the results of the tuples; in several batches if strings need it."""
        try:
            arrays = self._values(tuples, [o.expr for o in self._query.select])
        except TooManyBytes:
            for part in _halves(tuples):
                yield from self.batches(part)
            return
        yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def holds(self, condition: Expr, tuples: Tuples) -> Bytes:
        """Return one byte per tuple, 1 where the condition is true."""
        try:
            (verdict,) = self._values(tuples, [condition])
        except TooManyBytes:
            halves = [self.holds(condition, part) for part in _halves(tuples)]
            return np.concatenate(halves)
        return np.asarray(
            pc.fill_null(verdict.cast(pa.bool_()), False).cast(pa.uint8()).to_numpy(), np.uint8
        )

    def _values(self, tuples: Tuples, expressions: list[Expr]) -> list[pa.Array]:
        gathered: dict[Column, pa.Array] = {}

        def column(c: Column) -> pa.Array:
            if c not in gathered:
                stream = self._position[c.stream]
                gathered[c] = self._bases[stream].gather(c.name, tuples[stream])
            return gathered[c]

        n = len(next(iter(tuples.values())))
        return [column(e) if isinstance(e, Column) else evaluate(e, column, n) for e in expressions]


def _halves(tuples: Tuples) -> tuple[Tuples, Tuples]:
    """Divide tuples into two halves; a single one that is too large cannot be divided."""
    half = len(next(iter(tuples.values()))) // 2
    if half == 0:
        raise TooManyBytes
    first = {s: p[:half] for s, p in tuples.items()}
    return first, {s: p[half:] for s, p in tuples.items()}

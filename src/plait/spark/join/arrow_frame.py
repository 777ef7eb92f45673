"""pandas frames of Arrow arrays, which PySpark passes to Spark without converting values.

PySpark takes arrays and structs in a pandas frame apart, value by value: it makes NaN null, and
fails on null and on nanoseconds. It does so with `Series.apply`. The columns of the frames here do
not apply anything, so that all values go from Arrow to Arrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa


class _ArrowSeries(pd.Series):  # type: ignore[misc]  # pandas has no types here
    """A column that PySpark does not convert."""

    @property
    def _constructor(self) -> Callable[..., _ArrowSeries]:
        return _ArrowSeries

    def apply(self, *args: Any, **kwargs: Any) -> _ArrowSeries:
        """The column itself."""
        del args, kwargs
        return self


class _ArrowFrame(pd.DataFrame):  # type: ignore[misc]
    """A frame of such columns."""

    @property
    def _constructor(self) -> Callable[..., _ArrowFrame]:
        return _ArrowFrame

    @property
    def _constructor_sliced(self) -> Callable[..., _ArrowSeries]:
        return _ArrowSeries


def arrow_frame(batch: pa.RecordBatch) -> pd.DataFrame:
    """The columns of a batch as a pandas frame.

    >>> nested = arrow_frame(pa.record_batch({"x": [[float("nan")], None]}))["x"]
    >>> pa.Array.from_pandas(nested.apply(list)).to_pylist()
    [[nan], None]
    """
    return _ArrowFrame(batch.to_pandas(types_mapper=pd.ArrowDtype))

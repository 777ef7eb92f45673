"""How trees of the JVM become text; tests/spark/test_columns.py has Spark's own."""

from __future__ import annotations

from typing import Any

import pytest

from plait.errors import QueryError
from plait.spark.join.columns import column_text


def test_a_column_of_spark_connect_is_refused() -> None:
    column: Any = object()
    with pytest.raises(QueryError, match="Spark Connect cannot be read; write it as text"):
        column_text(column)

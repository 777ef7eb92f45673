"""Capital and small letters: every character, by Spark and by Plait."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from plait.query.values.strings import initcap
from plait.query.values.text import lower, upper

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

IOTA = 0x345
"""Below another letter it has no capital at the beginning of a word, and Python gives it one."""


def test_differential_every_character(spark: SparkSession) -> None:
    last = 0x1FFFF
    assert not any(chr(c).upper() != chr(c) for c in range(last + 1, sys.maxunicode + 1))
    codes = [c for c in range(last + 1) if not 0xD800 <= c < 0xE000 and c != IOTA]
    texts = pa.array([chr(c) for c in codes])
    frame = spark.createDataFrame(pa.table({"i": range(len(codes)), "s": texts}))
    rows = frame.selectExpr("i", "upper(s) AS u", "lower(s) AS l", "initcap(s) AS t")
    theirs = rows.toArrow().sort_by("i")
    for name, function in (("u", upper), ("l", lower), ("t", initcap)):
        pairs = zip(codes, function(texts).to_pylist(), theirs[name].to_pylist(), strict=True)
        assert not [(hex(c), ours, spark) for c, ours, spark in pairs if ours != spark]

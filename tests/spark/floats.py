"""Floating-point numbers that become text, decimals and rounded numbers: by Spark and by Plait.

Run as a program, it prints how many of them differ with the Java that JAVA_HOME names.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import plait
from plait.query.dialect import Dialect
from plait.query.evaluate import evaluate
from plait.query.query import Field, Stream
from plait.query.sql import parse_output
from plait.spark.environment.java import writes_shortest

ORDINARY = [
    0.0, -0.0, 1.0, -1.0, 0.1, 0.2, 0.3, 0.7, 1.1, 2.5, 100.0, 123.456, 0.001, 0.002, 0.00123, 1e-4,
    9.9e-4, 1234567.0, 9999999.0, 1e7, 1.2e7, 12345678.0, 1e10, 1.5e-10, -2.5e-7,
    math.nan, math.inf, -math.inf, 16777216.0, 0.5, 0.25, 1 / 3, 2 / 3, 1e-5, 3.3e-5, 1e30, 65504.0,
]  # fmt: skip
AWKWARD = [1e23, 2e23, 8.41e21, 2e-3, 5e-324, 9007199254740993.0, 4.8726570057e288, 5e22, 2.5e22,
           1.05e22, 2.0**60, 2.0**-44, 9.671394e24, 4.7529286e25, 1e-323]  # fmt: skip
EXPRESSIONS = (
    "CAST(x AS STRING)", "concat('=', x)", "concat_ws('-', x, 1, x)", "CAST(x AS DECIMAL(38, 0))",
    "CAST(x AS DECIMAL(38, 17))", "CAST(x AS DECIMAL(38, 30))", "round(x)", "round(x, 3)",
    "round(x, -23)", "round(x, -22)", "bround(x, -22)", "bround(x, 2)", "x || 's'",
    "CAST(CAST(x AS STRING) AS DOUBLE)", "if(x > 0, string(x), 'none')",
    "CAST(2E23D AS STRING)", "CAST(2E23D AS DECIMAL(38, 0))",
)  # fmt: skip


def numbers(kind: type[np.floating], many: int) -> np.ndarray:
    """Ordinary ones, every power of two and ten with neighbours, few and random bits."""
    info = np.finfo(kind)
    bits = np.uint32 if kind is np.float32 else np.uint64
    rng = np.random.default_rng(1)
    exponents = np.arange(info.minexp - info.nmant, info.maxexp)
    with np.errstate(over="ignore", under="ignore"):
        powers = np.ldexp(kind(1), exponents)
        tens = np.array([float(f"1e{e}") for e in range(-323, 309)]).astype(kind)
        awkward = np.array(ORDINARY + AWKWARD).astype(kind)
        short = [f"{m}e{e}" for m, e in rng.integers((1, 15), (10**6, 35), (many // 4, 2))]
        decimals = np.array(short, np.float64).astype(kind)
    edges = np.concatenate([powers, tens, np.array([info.max, info.tiny], kind)])
    with np.errstate(over="ignore", under="ignore"):
        beside = [np.nextafter(edges, kind(way)) for way in (0, np.inf)]
    few = np.arange(2000).astype(bits).view(kind)
    anything = rng.integers(0, np.iinfo(bits).max, many, bits, endpoint=True).view(kind)
    prices = (rng.integers(0, 10**9, many) / rng.choice([1, 10, 100, 1000], many)).astype(kind)
    whole = (rng.integers(0, 2**63, many) >> rng.integers(0, 40, many)).astype(kind)
    return np.concatenate([awkward, edges, *beside, few, anything, prices, whole, decimals])


def differences(session: SparkSession, kind: type[np.floating], many: int) -> Iterator[str]:
    """Where Plait, asked as on this session, has another value than Spark."""
    given = pa.array(numbers(kind, many))
    frame = session.createDataFrame(pa.table({"i": range(len(given)), "x": given}))
    named = [f"{text} AS c{n}" for n, text in enumerate(_tried())]
    theirs = frame.selectExpr("i", *named).toArrow().sort_by("i")
    stream = Stream("t", (Field("x", given.type), Field("ts", pa.timestamp("us", "UTC"))), "ts")
    dialect = Dialect("UTC", shortest=writes_shortest(session))
    for n, text in enumerate(EXPRESSIONS):
        (output,) = parse_output(f"{text} AS y", [stream], dialect)
        ours = evaluate(output.expr, lambda column: given, len(given))
        expected = theirs.column(f"c{n}").combine_chunks()
        for number, a, b in zip(
            given.to_pylist(),
            map(seen, ours.to_pylist()),
            map(seen, expected.to_pylist()),
            strict=True,
        ):
            if a != b:
                yield f"{text} of {number!r} is {a!r}, and {b!r} on Spark"


def seen(value: object) -> object:
    """NaN as something that equals itself."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _tried() -> Iterator[str]:
    """What asks Spark for null where it would fail."""
    for text in EXPRESSIONS:
        yield text.replace("CAST(x AS DECIMAL", "TRY_CAST(x AS DECIMAL")


if __name__ == "__main__":
    spark = plait.spark.session(1, memory="1g", scratch=Path(sys.argv[1]))
    spark.sparkContext.setLogLevel("OFF")
    found = [d for kind in (np.float32, np.float64) for d in differences(spark, kind, 2000)]
    print(json.dumps({"shortest": writes_shortest(spark), "differences": found[:20]}))
    spark.stop()

"""Columns of every type of Spark as keys, in conditions and as payload: Spark's answer, or refused.

What is refused names the column and the type, when the question is asked and not in a batch.
`tests/spark/join/test_schemas.py` fails when PySpark has a type that is not listed there; then it
belongs here, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # the name everybody uses

import plait
from plait.errors import PlaitError, SourceError, TypeMismatch

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

CHAR = "__CHAR_VARCHAR_TYPE_STRING"
LCASE = "COLLATE UTF8_LCASE"
POINT = "X'0101000000000000000000F03F0000000000000040'"


@dataclass(frozen=True)
class Example:
    """A column: two values in SQL, and what Plait does with it beside refusing it."""

    one: str
    other: str
    does: str
    """`k` if it is a join key, `c` if `a.x < b.x` is answered, `p` if results may have it."""


EXAMPLES = {
    "void": Example("NULL", "NULL", "cp"),
    "string": Example("'A'", "'a'", "kcp"),
    "lcase": Example(f"'A' {LCASE}", f"'a' {LCASE}", "p"),
    "unicode": Example("'ä' COLLATE UNICODE_CI_AI", "'A' COLLATE UNICODE_CI_AI", "p"),
    "trimmed": Example("'a ' COLLATE UTF8_BINARY_RTRIM", "'a' COLLATE UTF8_BINARY_RTRIM", "p"),
    "binary": Example("X'00FF'", "X''", "kcp"),
    "boolean": Example("TRUE", "FALSE", "kcp"),
    "date": Example("DATE'2024-01-01'", "DATE'0001-01-01'", "kcp"),
    "time": Example("TIME'12:00:00.123456'", "TIME'00:00:00'", "kcp"),
    "time3": Example("CAST('12:00:00.123' AS TIME(3))", "CAST('00:00' AS TIME(3))", "kcp"),
    "time9": Example("TIME'12:00:00.123456789'", "TIME'12:00:00.123456788'", "kcp"),
    "timestamp": Example("TIMESTAMP'2024-01-01'", "TIMESTAMP'1900-01-01'", "kcp"),
    "ntz": Example("TIMESTAMP_NTZ'2024-01-01'", "TIMESTAMP_NTZ'1900-01-01'", "kcp"),
    "decimal": Example("1.50BD", "-1.00BD", "kcp"),
    "wide": Example("CAST(1 AS DECIMAL(38, 18))", "CAST(-9.5 AS DECIMAL(38, 18))", "kcp"),
    "double": Example("DOUBLE('NaN')", "-0.0D", "kcp"),
    "float": Example("FLOAT('NaN')", "1.5F", "kcp"),
    "tinyint": Example("1Y", "-127Y", "kcp"),
    "smallint": Example("1S", "-1S", "kcp"),
    "int": Example("1", "2147483647", "kcp"),
    "bigint": Example("1L", "9223372036854775807L", "kcp"),
    "seconds": Example("INTERVAL '1 2:03:04.5' DAY TO SECOND", "INTERVAL '0' SECOND", "kcp"),
    "hours": Example("INTERVAL '2' HOUR", "INTERVAL '-3' HOUR", "kcp"),
    "days": Example("INTERVAL '2 1' DAY TO HOUR", "INTERVAL '3 2' DAY TO HOUR", "kcp"),
    "months": Example("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '0-1' YEAR TO MONTH", ""),
    "years": Example("INTERVAL '1' YEAR", "INTERVAL '2' YEAR", ""),
    "calendar": Example("make_interval(1, 2, 3)", "make_interval(0)", ""),
    "map": Example("MAP('a', 1)", "MAP('b', 2)", ""),
    "array": Example("ARRAY(1, NULL)", "ARRAY(2)", "p"),
    "struct": Example("NAMED_STRUCT('v', 1, 'w', 'z')", "NAMED_STRUCT('v', 2, 'w', 'y')", "p"),
    "nothing": Example("STRUCT()", "STRUCT()", ""),
    "twice": Example("NAMED_STRUCT('v', 1, 'v', 2)", "NAMED_STRUCT('v', 2, 'v', 2)", ""),
    "variant": Example("parse_json('[1]')", "parse_json('2')", ""),
    "geometry": Example(f"st_geomfromwkb({POINT})", f"st_geomfromwkb({POINT})", ""),
    "geography": Example(f"st_geogfromwkb({POINT})", f"st_geogfromwkb({POINT})", ""),
    # Columns of a table and of DataFrames, made below.
    "char": Example("'ab'", "'ab   '", "p"),
    "longer_char": Example("'ab'", "'AB'", "p"),
    "varchar": Example("'ab'", "'ab '", "kcp"),
    "chars": Example("ARRAY('ab')", "ARRAY('a')", "p"),
    "char_within": Example("NAMED_STRUCT('v', 'ab')", "NAMED_STRUCT('v', 'a')", "p"),
    "vector": Example("", "", ""),
}
"""By the name of the column."""

TABLE = {
    "char": "CHAR(5)",
    "longer_char": "CHAR(7)",
    "varchar": "VARCHAR(5)",
    "chars": "ARRAY<CHAR(3)>",
    "char_within": "STRUCT<v: CHAR(4)>",
}

CONDITIONS = (
    "{a} = {b}",
    "{a} < {b}",
    "{a} <=> {b}",
    "{a} = {one}",
    "{one} <> {a}",
    "{a} IN ({one}, {other})",
    "{a} BETWEEN {other} AND {b}",
    "{a} IS NULL",
    "coalesce({a}, {b})",
    "greatest({a}, {b})",
    "nullif({a}, {b})",
    "CASE WHEN a.k = 1 THEN {a} ELSE {b} END",
    "CAST({a} AS STRING)",
    "CAST({a} AS STRING) = 'a'",
    "upper({a})",
    "length({a})",
    "concat({a}, 'x')",
    "contains({a}, 'a')",
    "startswith({a}, 'a')",
    "locate('a', {a})",
    "{a} LIKE 'a%'",
    "{a} RLIKE 'a'",
)


def within(outer: str, value: str) -> str:
    """A value in SQL within an array or a struct."""
    return f"ARRAY({value})" if outer == "array" else f"NAMED_STRUCT('v', {value})"


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFrame]:
    """Three rows with a column of every type, the last of them null; also as views `a` and `b`."""
    spark.conf.set("spark.sql.timeType.enabled", "true")
    made = {n: e for n, e in EXAMPLES.items() if n not in TABLE and n != "vector"}
    values = [{n: e.one for n, e in made.items()}, {n: e.other for n, e in made.items()}]
    for row in values:
        for name in made:
            row |= {f"{outer}_of_{name}": within(outer, row[name]) for outer in ("array", "struct")}
    selects = [
        f"SELECT {n} AS n, " + ", ".join(f"{value} AS {name}" for name, value in row.items())
        for n, row in enumerate(values)
    ]
    nulls = "SELECT 2, " + ", ".join(["NULL"] * len(values[0]))
    base = spark.sql(" UNION ALL ".join([*selects, nulls]))
    folder = tmp_path_factory.mktemp("chars")
    declared = ", ".join(f"{name} {type_}" for name, type_ in TABLE.items())
    spark.sql(f"CREATE TABLE chars (n INT, {declared}) USING parquet LOCATION '{folder}'")
    for n, which in enumerate(("one", "other")):
        stored = ", ".join(getattr(EXAMPLES[name], which) for name in TABLE)
        spark.sql(f"INSERT INTO chars SELECT {n}, {stored}")
    spark.sql(f"INSERT INTO chars SELECT 2, {', '.join(['NULL'] * len(TABLE))}")
    vectors = spark.createDataFrame(
        [(0, Vectors.dense(1.0)), (1, Vectors.dense(2.0)), (2, None)],
        T.StructType([T.StructField("n", T.IntegerType()), T.StructField("vector", VectorUDT())]),
    )
    frame = (
        base.join(spark.table("chars"), "n")
        .join(vectors, "n")
        .selectExpr("TIMESTAMP'2024-01-01' + n * INTERVAL '1' SECOND AS ts", "1 AS k", "*")
    )
    for view in "ab":
        frame.createOrReplaceTempView(view)
    yield frame
    spark.sql("DROP TABLE chars")
    for view in "ab":
        spark.catalog.dropTempView(view)
    spark.conf.unset("spark.sql.timeType.enabled")


def question(outputs: str, key: str = "a.k = b.k") -> str:
    """A join of everything with everything that has the same key."""
    window = "b.ts BETWEEN a.ts - INTERVAL 9 SECONDS AND a.ts + INTERVAL 9 SECONDS"
    return f"SELECT {outputs} FROM a JOIN b ON {key} AND {window}"


def asked(spark: SparkSession, text: str) -> plait.Sql | PlaitError:
    """The question, or why it is refused; any other error is one of the test."""
    try:
        return plait.sql(spark, text, time={"a": "ts", "b": "ts"})
    except PlaitError as refusal:
        return refusal


def found(frame: DataFrame) -> Counter[str]:
    """The rows of a DataFrame; their text tells NaN and -0.0 apart from the rest."""
    return Counter(map(repr, frame.collect()))


def is_sql(spark: SparkSession, text: str) -> bool:
    """Whether Spark finds a meaning in it."""
    try:
        spark.sql(text).schema  # noqa: B018, this analyses it
    except AnalysisException:
        return False
    return True


def test_differential_payload(spark: SparkSession, rows: DataFrame) -> None:
    """Results have the values and the types of Spark's, also within others; or are refused."""
    carried = []
    for name in (n for n in rows.columns if n not in ("ts", "k", "n")):
        question_or_refusal = asked(spark, question(f"a.{name} AS x"))
        is_carried = "p" in EXAMPLES[name.rpartition("_of_")[2]].does
        assert is_carried == isinstance(question_or_refusal, plait.Sql), question_or_refusal
        if is_carried:
            carried.append(name)
        else:
            assert f"a.{name} is of type " in str(question_or_refusal)
    outputs = ", ".join(f"{s}.{n} AS {s}_{n}" for n in carried for s in "ab")
    theirs = spark.sql(question(outputs))
    answer = asked(spark, question(outputs))
    assert isinstance(answer, plait.Sql)
    ours = answer.to_df()
    for field in theirs.schema:
        mine = ours.schema[field.name]
        assert mine.dataType.simpleString() == field.dataType.simpleString(), field.name
        assert mine.metadata.get(CHAR) == field.metadata.get(CHAR), field.name
    got, expected = ours.collect(), theirs.collect()
    for name in ours.columns:
        assert Counter(repr(r[name]) for r in got) == Counter(repr(r[name]) for r in expected), name
    assert Counter(map(repr, got)) == Counter(map(repr, expected))


def test_differential_conditions(spark: SparkSession, rows: DataFrame) -> None:
    """Everything that is computed is Spark's, or it is refused before any batch."""
    answered: dict[str, str] = {}
    for name, example in EXAMPLES.items():
        a, b = f"a.{name}", f"b.{name}"
        for n, template in enumerate(CONDITIONS):
            if not example.one and ("{one}" in template or "{other}" in template):
                continue
            text = template.format(a=a, b=b, one=example.one, other=example.other)
            question_or_refusal = asked(spark, question(f"{text} AS x"))
            if isinstance(question_or_refusal, plait.Sql):
                assert is_sql(spark, question(f"{text} AS x")), f"Spark refuses {text}"
                answered[f"{name}_{n}"] = text
            if template == "{a} < {b}":
                is_answered = isinstance(question_or_refusal, plait.Sql)
                assert is_answered == ("c" in example.does), question_or_refusal
    outputs = ", ".join(f"{text} AS {name}" for name, text in answered.items())
    theirs = spark.sql(question(outputs)).collect()
    answer = asked(spark, question(outputs))
    assert isinstance(answer, plait.Sql)
    ours = answer.to_df().collect()
    for name, text in answered.items():
        expected = Counter(repr(row[name]) for row in theirs)
        assert Counter(repr(row[name]) for row in ours) == expected, text
    print(f"{len(answered)} conditions on {len(EXAMPLES)} types are answered as Spark does")


def test_differential_keys(spark: SparkSession, rows: DataFrame) -> None:
    """Rows meet by a key as in Spark, or the key is refused by its name."""
    for name, example in EXAMPLES.items():
        text = question("a.ts AS t, b.ts AS u", f"a.{name} = b.{name}")
        question_or_refusal = asked(spark, text)
        if "k" in example.does:
            assert isinstance(question_or_refusal, plait.Sql), question_or_refusal
            expected = found(spark.sql(text))
            assert found(question_or_refusal.to_df()) == expected, name
            assert expected
        else:
            assert isinstance(question_or_refusal, TypeMismatch), name
            assert f"a.{name} " in str(question_or_refusal)
            assert question_or_refusal.remedy


def test_differential_collations_and_chars_after_a_cast(
    spark: SparkSession, rows: DataFrame
) -> None:
    """What the refusal advises is answered, and what follows the join compares as Spark does."""
    conditions = [f"CAST(a.{n} AS STRING) = CAST(b.{n} AS STRING)" for n in ("lcase", "char")]
    text = question("a.lcase AS x, b.char AS y, b.ts AS u", f"a.k = b.k AND {conditions[0]}")
    answer = asked(spark, text)
    assert isinstance(answer, plait.Sql)
    downstream = "x = 'A' AND y = 'ab'"
    theirs = found(spark.sql(text).where(downstream))
    assert found(answer.to_df().where(downstream)) == theirs
    assert len(theirs) > 1, "rows that only a collation and padding let through"


def test_casts_to_types_that_are_not_plain(spark: SparkSession, rows: DataFrame) -> None:
    """Regression: a cast to a collated string was one to STRING, with other answers."""
    for type_ in (f"STRING {LCASE}", "TIMESTAMP_NTZ(9)", "TIME"):
        refusal = asked(spark, question(f"CAST(a.string AS {type_}) AS x"))
        assert isinstance(refusal, PlaitError) and "is not supported" in str(refusal)


def test_late_rows_have_the_types_of_their_source(spark: SparkSession, tmp_path: Path) -> None:
    schema = f"ts TIMESTAMP, k INT, s STRING {LCASE}, h INTERVAL HOUR"
    stream = spark.readStream.schema(schema).parquet(str(tmp_path))
    joined = plait.join(a=stream, b=stream).on("a.k = b.k").within("1 second").watermark("1 second")
    results = joined.select("a.s", "b.h").to_df(late=True)
    late = results.schema["late"].dataType
    assert isinstance(late, T.StructType)
    for name in "sh":
        expected = stream.schema[name].dataType
        assert results.schema[name].dataType == expected
    assert (
        late["a"].dataType.simpleString()
        == "struct<ts:timestamp,k:int,s:string collate UTF8_LCASE>"
    )


def test_a_delta_table_has_no_collations(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    schema = f"ts TIMESTAMP, k INT, s STRING {LCASE}"
    stream = spark.readStream.schema(schema).parquet(str(tmp_path))
    joined = plait.join(a=stream, b=stream).on("a.k = b.k").within("1 second").select("a.s")
    with pytest.raises(
        TypeMismatch, match=r"string collate UTF8_LCASE.*CAST\(a.s AS STRING\) AS s"
    ):
        joined.write_delta(tmp_path / "table", checkpoint=tmp_path / "check")


def test_a_type_that_pyspark_does_not_know(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.timestampNanosTypes.enabled", "true")
    try:
        frame = spark.sql("SELECT CAST('2024-01-01' AS TIMESTAMP_LTZ(9)) AS x")
        with pytest.raises(SourceError, match=r"a type of 'a': .*timestamp_ltz\(9\)"):
            plait.join(a=frame, b=frame)
    finally:
        spark.conf.unset("spark.sql.timestampNanosTypes.enabled")

"""SQL expressions, translated one construct at a time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait import errors
from plait.query.expr import Call, Cast, Column, Expr, Literal
from plait.query.query import Field, Stream
from plait.query.sql import parse_output

T = Stream(
    "t",
    (
        Field("n", pa.int64()),
        Field("x", pa.float64()),
        Field("s", pa.string()),
        Field("p", pa.bool_()),
        Field("ts", pa.timestamp("us")),
        Field("Mixed", pa.int64()),
    ),
    "ts",
)
U = Stream("u", (Field("ts", pa.timestamp("us")), Field("my col", pa.int64())), "ts")
N, X, S, P, TS = (Column("t", name) for name in ("n", "x", "s", "p", "ts"))


def literal(value: object) -> Literal:
    return Literal(value, pa.scalar(value).type)


def one(text: str) -> Expr:
    (output,) = parse_output(text, [T, U])
    return output.expr


NULL = Literal(None, pa.null())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n = 1", Call("eq", (N, literal(1)))),
        ("n == 1", Call("eq", (N, literal(1)))),
        ("n != 1", Call("ne", (N, literal(1)))),
        ("n <> 1", Call("ne", (N, literal(1)))),
        ("n < 1", Call("lt", (N, literal(1)))),
        ("n <= 1", Call("le", (N, literal(1)))),
        ("n > 1", Call("gt", (N, literal(1)))),
        ("n >= 1", Call("ge", (N, literal(1)))),
        ("n <=> 1", Call("nseq", (N, literal(1)))),
        ("n IS NOT DISTINCT FROM 1", Call("nseq", (N, literal(1)))),
        ("n IS DISTINCT FROM 1", Call("not", (Call("nseq", (N, literal(1))),))),
        ("n + 1", Call("add", (N, literal(1)))),
        ("n - 1", Call("sub", (N, literal(1)))),
        ("n * 2 / 3 % 4", Call("mod", (Call("div", (Call("mul", (N, literal(2))), literal(3))),
                                       literal(4)))),
        ("mod(n, 2)", Call("mod", (N, literal(2)))),
        ("-n", Call("neg", (N,))),
        ("- 5", literal(-5)),
        ("p AND NOT p OR p", Call("or", (Call("and", (P, Call("not", (P,)))), P))),
        ("n IS NULL", Call("is_null", (N,))),
        ("n IS NOT NULL", Call("not", (Call("is_null", (N,)),))),
        ("p IS TRUE", Call("nseq", (P, literal(True)))),
        ("p IS NOT FALSE", Call("not", (Call("nseq", (P, literal(False))),))),
        ("n IN (1, 2)", Call("in", (N, literal(1), literal(2)))),
        ("n NOT IN (1)", Call("not", (Call("in", (N, literal(1))),))),
        ("s LIKE 'a%'", Call("like", (S, literal("a%")))),
        ("s NOT LIKE 'a\\%'", Call("not", (Call("like", (S, literal("a\\%"))),))),
        ("n BETWEEN 1 AND 2", Call("and", (Call("ge", (N, literal(1))),
                                           Call("le", (N, literal(2)))))),
        ("n NOT BETWEEN 1 AND 2", Call("not", (Call("and", (Call("ge", (N, literal(1))),
                                                            Call("le", (N, literal(2))))),))),
        ("CASE WHEN p THEN 1 ELSE 2 END", Call("case", (P, literal(1), literal(2)))),
        ("CASE n WHEN 1 THEN 'a' WHEN 2 THEN 'b' END",
         Call("case", (Call("eq", (N, literal(1))), literal("a"), Call("eq", (N, literal(2))),
                       literal("b"), NULL))),
        ("if(p, 1, 2)", Call("case", (P, literal(1), literal(2)))),
        ("nullif(n, 0)", Call("case", (Call("eq", (N, literal(0))), NULL, N))),
        ("coalesce(n, 0)", Call("coalesce", (N, literal(0)))),
        ("nvl(n, 0)", Call("coalesce", (N, literal(0)))),
        ("ifnull(n, 0)", Call("coalesce", (N, literal(0)))),
        ("lower(s)", Call("lower", (S,))),
        ("UPPER(s)", Call("upper", (S,))),
        ("abs(n)", Call("abs", (N,))),
        ("length(s)", Call("length", (S,))),
        ("char_length(s)", Call("length", (S,))),
        ("concat(s, 'x', s)", Call("concat", (S, literal("x"), S))),
        ("s || 'x'", Call("concat", (S, literal("x")))),
        ("round(x)", Call("round", (X,))),
        ("round(x, -2)", Call("round", (X, literal(-2)))),
        ("floor(x)", Call("floor", (X,))),
        ("ceil(x)", Call("ceil", (X,))),
        ("ceiling(x)", Call("ceil", (X,))),
        ("greatest(n, 1)", Call("greatest", (N, literal(1)))),
        ("least(n, 1)", Call("least", (N, literal(1)))),
        ("substring(s, 2)", Call("substring", (S, literal(2)))),
        ("substr(s, 2, 3)", Call("substring", (S, literal(2), literal(3)))),
        ("substring(s FROM 2 FOR 3)", Call("substring", (S, literal(2), literal(3)))),
        ("trim(s)", Call("trim", (S,))),
        ("unix_micros(t.ts)", Call("unix_micros", (TS,))),
        ("CAST(n AS DOUBLE)", Cast(N, pa.float64())),
        ("n::string", Cast(N, pa.string())),
        ("try_cast(s AS DECIMAL(10, 2))", Cast(S, pa.decimal128(10, 2))),
        ("MIXED", Column("t", "Mixed")),
        ("T.Mixed", Column("t", "Mixed")),
        ("u.`my col`", Column("u", "my col")),
        ("((n))", N),
        ("s RLIKE '^a'", Call("rlike", (S, literal("^a")))),
        ("s NOT RLIKE '^a'", Call("not", (Call("rlike", (S, literal("^a"))),))),
        ("s ILIKE 'A%'", Call("like", (Call("lower", (S,)), literal("a%")))),
        ("s LIKE 'a!%' ESCAPE '!'", Call("like", (S, literal("a!%"), literal("!")))),
        ("s NOT LIKE 'a!%' ESCAPE '!'",
         Call("not", (Call("like", (S, literal("a!%"), literal("!"))),))),
        ("n DIV 2", Call("intdiv", (N, literal(2)))),
        ("n & 1", Call("and_bits", (N, literal(1)))),
        ("(n & 1) | ~n", Call("or_bits", (Call("and_bits", (N, literal(1))),
                                          Call("not_bits", (N,))))),
        ("n << 2", Call("shiftleft", (N, literal(2)))),
        ("trim(BOTH 'x' FROM s)", Call("trim", (S, literal("x")))),
        ("trim(LEADING FROM s)", Call("ltrim", (S,))),
        ("ltrim('x', s)", Call("ltrim", (S, literal("x")))),
        ("position('x' IN s)", Call("locate", (literal("x"), S))),
        ("instr(s, 'x')", Call("locate", (literal("x"), S))),
        ("left(s, 2)", Call("substring", (S, literal(1), literal(2)))),
        ("nvl2(n, 1, 2)", Call("case", (Call("not", (Call("is_null", (N,)),)), literal(1),
                                        literal(2)))),
        ("decode(n, 1, 'a', 'b')", Call("case", (Call("nseq", (N, literal(1))), literal("a"),
                                                 literal("b")))),
        ("year(t.ts)", Call("year", (Cast(TS, pa.date32()),))),
        ("extract(HOUR FROM t.ts)", Call("hour", (TS,))),
        ("date_sub(t.ts, n)", Call("date_add", (Cast(TS, pa.date32()), Call("neg", (N,))))),
        ("date_trunc('DAY', t.ts)", Call("date_trunc", (literal("DAY"), TS))),
        ("to_timestamp(s)", Cast(S, pa.timestamp("us"))),
        ("to_timestamp(s, 'yyyy')", Call("parse_timestamp", (S, literal("yyyy")))),
        ("double(n)", Cast(N, pa.float64())),
        ("try_add(n, 1)", Call("add", (N, literal(1)))),
    ],
)  # fmt: skip
def test_constructs(text: str, expected: Expr) -> None:
    assert one(text) == expected


@pytest.mark.parametrize(
    ("text", "name", "column"),
    [
        ("sum(n)", "the aggregate function SUM", 1),
        ("1 + count(*)", "the aggregate function COUNT", 5),
        ("row_number() OVER (ORDER BY n)", "a window function (OVER)", 1),
        ("foo(n)", "the function FOO", 1),
        ("1 + now()", "the function NOW", 5),
        ("ln(x)", "the function LN", 1),
        ("current_timestamp()", "the function CURRENT_TIMESTAMP", 1),
        ("date_add(DAY, 1, t.ts)", "DATE_ADD with 3 arguments", 1),
        ("explode_outer(s)", "the function EXPLODE_OUTER", 1),
        ("(SELECT 1)", "a subquery", 1),
        ("n IN (SELECT 1)", "a subquery", 1),
        ("EXISTS (SELECT 1)", "EXISTS", 1),
        ("n = ?", "a parameter", 5),
        ("n = :x", "a parameter", 5),
        ("n IN (n)", "t.n in the list of IN", 7),
        ("s LIKE s", "LIKE with a pattern that is no constant", 1),
        ("n & 1 | 2", "a mixture of &, |, ^ and shifts", 1),
        ("abs(DISTINCT n)", "DISTINCT in ABS", 14),
        ("extract(EPOCH FROM t.ts)", "the field EPOCH", 1),
        ("s[0]", "an element of an array or map ([...])", 1),
        ("round(x, 1, 2)", "ROUND with 3 arguments", 1),
        ("ceil(x, 1)", "CEIL with 2 arguments", 1),
        ("n BETWEEN SYMMETRIC 1 AND 2", "BETWEEN with SYMMETRIC", 1),
        ("CAST(n AS ARRAY<INT>)", "the type ARRAY<INT>", 1),
        ("CAST(n AS DECIMAL(50, 2))", "DECIMAL(50, 2)", 1),
        ("(n, x) = (1, 2)", "a list of values in parentheses", 1),
        ("abs(*)", "*", 5),
        ("transform(s, x -> x)", "the function TRANSFORM", 1),
        ("explode(s)", "the function EXPLODE", 1),
    ],
)
def test_what_is_not_supported_is_refused_by_name_and_place(
    text: str, name: str, column: int
) -> None:
    with pytest.raises(errors.UnsupportedSql) as caught:
        one(text)
    assert f"line 1, column {column}: {name} is not supported" in str(caught.value)
    assert (caught.value.line, caught.value.column) == (1, column)


def test_an_unknown_function_has_a_remedy() -> None:
    with pytest.raises(errors.UnsupportedSql, match="did you mean sqrt"):
        one("sqr(x)")
    with pytest.raises(errors.UnsupportedSql, match="compute it with Spark before the join"):
        one("sin(x)")
    with pytest.raises(errors.UnsupportedSql, match="aggregate the results afterwards"):
        one("max(x)")


def test_wrong_numbers_of_arguments() -> None:
    with pytest.raises(errors.UnsupportedSql, match=r"LOWER with 2 arguments .* it takes 1"):
        one("lower(s, s)")
    with pytest.raises(errors.UnsupportedSql, match=r"COALESCE with 0 arguments .* 1 or more"):
        one("coalesce()")
    with pytest.raises(errors.UnsupportedSql, match=r"LPAD with 1 argument is .* 2 to 3"):
        one("lpad(s)")

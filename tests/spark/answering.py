"""What is compared with Spark SQL: awkward rows, and expressions over them.

Every case is a text for Plait (and for Spark without ANSI), and the text that asks Spark with ANSI
for null where it would fail.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

ROWS = r"""
SELECT * FROM VALUES
 (0, 1Y, 1, 1L, 1.5F, 2.5D, 1.25BD, ' 7 ', true, DATE'2024-03-31', '2024-03-31 02:30:00',
  '1.5', X'41', 'Hello, World', 2),
 (1, -128Y, 2147483647, 9223372036854775807L, -0.0F, -0.0D, -99999999.99BD, '-12', false,
  DATE'1969-12-31', '1969-12-31 23:59:59.999999', '2024-10-27', X'FF', 'straße ÉCOLE', -2),
 (2, 127Y, -2147483648, -9223372036854775808L, CAST('3.4028235E38' AS FLOAT),
  1.7976931348623157E308D, 0.005BD, '2147483648', true, DATE'0001-01-01', '2024-10-27 02:30:00',
  'true', X'', 'a,b,,c', 0),
 (3, 0Y, 0, 0L, CAST('NaN' AS FLOAT), CAST('NaN' AS DOUBLE), 0.00BD, 'x', false, DATE'2024-02-29',
  '1900-01-01 00:00:00', '2024-02-30', X'C3A4', 'one\ntwo\r\n', 1),
 (4, -1Y, -1, -1L, CAST('Infinity' AS FLOAT), CAST('-Infinity' AS DOUBLE), -1.50BD, '1e3', true,
  DATE'9999-12-31', '2024-07-01 00:30:00.1', '2024-7-1 1:2:3Z', X'00', '😀é😀x', 5),
 (5, 3Y, 7, 10L, 0.1F, 0.1D, 2.50BD, '', NULL, DATE'1970-01-01', '1970-01-01 00:00:00', 'NaN',
  X'6162', '', 31),
 (6, 2Y, 3, -7L, 1E-10F, 1E23D, 33.33BD, '0.5', false, DATE'1582-10-10', '1850-06-01 12:00:00',
  '  y ', X'61', 'ab12cd3 ab', -7),
 (7, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
 (8, 5Y, 100, 1000000L, 16777216F, 9007199254740993D, 7.77BD, 'ÄßZ  a', true, DATE'2000-06-15',
  '2024-03-31 03:00:00.000001', '2024-03-31T02:30:00+01:00', X'7A', '2024-05-17', 12),
 (9, 6Y, 12, 64L, 2.25F, -2.5D, 1.45BD, 'ff', true, DATE'2024-12-31',
  '2024-12-31 22:45:59.5', '17.05.2024 08:09', X'0A', 'ΑΣ ΟΔΟΣ. ǆ ﬁ ŉ', 3)
AS t(id, i8, i32, i64, f32, f64, dec, s, b, d, at, w, bin, u, k)
"""
COLUMNS = (
    "id", "i8", "i32", "i64", "f32", "f64", "CAST(dec AS DECIMAL(12, 2)) AS dec", "s", "b", "d",
    "w", "bin", "u", "k", "CAST(at AS TIMESTAMP_NTZ) AS n",
    "timestamp_micros(unix_micros(CAST(at || 'Z' AS TIMESTAMP))) AS ts",
)  # fmt: skip
NUMBERS_OF = ("i8", "i32", "i64", "f32", "f64", "dec")
EVERY = (*NUMBERS_OF, "s", "b", "d", "w", "bin", "n", "ts")
TYPES = (
    "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 1)", "DECIMAL(20, 6)",
    "STRING", "BINARY", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ",
)  # fmt: skip
TRIED = {
    "+": "try_add",
    "-": "try_subtract",
    "*": "try_multiply",
    "/": "try_divide",
    "%": "try_mod",
}
LITERALS = (
    "1", "-2147483649", "9223372036854775807", "1.50", "1e3", "-0.0", "'it''s'", "X'4f'", "TRUE",
    "NULL", "DATE '2024-02-29'", "TIMESTAMP '2024-03-31 02:30:00'", "TIMESTAMP '2024-07-01'",
    "TIMESTAMP '2024-07-01 00:30:00Z'", "TIMESTAMP '2024-07-01 00:30:00+05:30'",
    "TIMESTAMP_NTZ '2024-03-31 02:30:00'", "TIMESTAMP_LTZ '2024-10-27 02:30:00'",
    "TIMESTAMP_LTZ '1890-01-01 00:00:00'", "CAST(TIMESTAMP '2024-07-01 00:30:00' AS DATE)",
    "CAST(TIMESTAMP_LTZ '2024-07-01 00:30:00Z' AS STRING)",
    "CAST('2024-07-01 00:30:00' AS TIMESTAMP)", "INTERVAL 90 SECONDS",
    "INTERVAL '1 10:30' DAY TO MINUTE",
)  # fmt: skip
OPERATORS = (
    "-i32", "-f64", "s || d", "CASE WHEN b THEN s ELSE w END",
    "CASE i32 WHEN 1 THEN 'a' ELSE 'b' END", "s LIKE '%a'", "s LIKE '_'", "s IN ('x', '')",
    "i32 IN (1, NULL)", "b IS TRUE", "s IS NULL", "i32 <=> NULL", "NOT b", "b AND i32 > 0",
    "b OR s = 'x'", "d = DATE '2024-02-29'", "ts > TIMESTAMP '2024-03-31 02:30:00'",
    "n > TIMESTAMP_NTZ '2024-03-31 02:30:00'", "ts > n", "ts > d", "n > d", "ts = w",
    "ts + INTERVAL 90 SECONDS", "n - INTERVAL 36 HOURS", "ts - TIMESTAMP '2024-01-01 00:00:00'",
    "d + INTERVAL 1 DAY", "d - DATE '2024-01-01'", "f64 = CAST('NaN' AS DOUBLE)", "f64 < f32",
    "i64 = f64", "dec = f64", "i32 = dec",
)  # fmt: skip
FUNCTIONS = (
    "abs(i32)", "abs(f64)", "abs(dec)", "ceil(f64)", "floor(f64)", "ceil(dec)", "floor(dec)",
    "round(f64)", "round(f64, 1)", "round(dec, 1)", "round(i32, -1)", "coalesce(i32, i64)",
    "coalesce(s, 'none')", "coalesce(d, DATE '2000-01-01')", "concat(s, '-', i32)",
    "concat(s, ts)", "concat(bin, bin)", "greatest(i32, f64)", "least(f32, f64)",
    "greatest(d, DATE '2000-01-01')", "length(s)", "length(bin)", "lower(s)", "upper(s)",
    "trim(s)", "substring(s, 2)", "substring(s, -2, 1)", "substring(s, 0, 2)", "unix_micros(ts)",
    "if(b, i32, i64)", "nullif(i32, 0)",
)  # fmt: skip
TEXTS = (
    "concat_ws(',', s, u)", "concat_ws('-', i32, s, d, ts)", 'concat_ws(NULL, s)',
    'concat_ws(s, u, w)', "concat_ws(',')", 'left(u, 3)', 'left(u, k)', 'right(u, 3)',
    'right(u, k)', 'right(u, -1)', 'char_length(u)', 'character_length(s)', 'len(u)',
    'octet_length(u)',
    'octet_length(bin)', 'bit_length(u)', 'upper(u)', 'lower(u)', 'ucase(u)', 'lcase(u)',
    'initcap(u)', 'initcap(s)', 'trim(s)', 'ltrim(s)', 'rtrim(s)', 'btrim(s)',
    "btrim(u, 'aeHox')", "trim('H' FROM u)", "trim(BOTH 'ax' FROM u)",
    "trim(LEADING 'ax' FROM u)", "trim(TRAILING 'bx' FROM u)", "ltrim('Ha', u)", "rtrim('bd', u)",
    "trim(u, 'ab')", "trim('' FROM u)", 'lpad(u, 5)', "lpad(u, 15, 'xy')", "lpad(u, 0, 'x')",
    "lpad(u, 14, '')", "rpad(u, 14, '*')", "rpad(u, 15, 'äö')", "rpad(u, k, '-')", 'lpad(s, k)',
    "replace(u, 'a', 'XX')", "replace(u, 'a')", "replace(u, '', 'x')", "replace(u, s, 'x')",
    "translate(u, 'abe😀', '1é')", "translate(u, 'aa', 'xy')", "translate(u, '', 'xy')",
    'reverse(u)', 'repeat(u, 2)', 'repeat(s, k)', 'space(k)', "instr(u, 'b')", "instr(u, '')",
    "instr(u, 'x')", 'instr(u, s)', "locate('a', u)", "locate('b', u, 3)", "locate('a', u, k)",
    "locate('', u, 3)", "locate('a', u, NULL)", "position('a' IN u)", "position('b', u, 2)",
    "split_part(u, ',', 2)", "split_part(u, ',', -1)", "split_part(u, '', 1)",
    "split_part(u, ' ', 5)", "substring_index(u, ',', 2)", "substring_index(u, ',', -2)",
    "substring_index(u, ' ', 1)", "substring_index(u, ' ', k)",
    "substring_index('aaaa', 'aa', -1)", "substring_index('aaaaa', 'aa', -2)",
    "startswith(u, 'a')", "endswith(u, 'b')", "contains(u, 'b')", 'contains(u, s)',
    "startswith(u, '')", 'ascii(u)', 'chr(i32)', 'chr(i64)', 'char(65 + k)', 'chr(k)', 'hex(i32)',
    'hex(i64)', 'hex(u)', 'hex(bin)', 'unhex(s)', "unhex('1')", 'bin(i64)', 'md5(u)', 'md5(bin)',
    'sha1(u)', 'sha(u)', 'sha2(u, 256)', 'sha2(u, 0)', 'sha2(u, 512)', 'sha2(u, 3)', 'crc32(u)',
    'crc32(bin)', 'base64(bin)', 'base64(u)', 'levenshtein(s, u)', "find_in_set('b', u)",
    "find_in_set('', u)", 'find_in_set(s, u)', "overlay(u PLACING '_' FROM 3)",
    "overlay(u PLACING 'XYZ' FROM 2 FOR 1)", "overlay(u, 'XYZ', k, 1)", "overlay(u, 'XYZ', 0, 3)",
    'substr(u, 2, 3)', 'substring(u, k, 2)', "u RLIKE 'a'", "u RLIKE '^[a-z]+'", "u RLIKE 'two$'",
    "u RLIKE 'o.t'", r"u RLIKE r'\d+'", r"u RLIKE r'^\w+$'", r"u RLIKE r'\s'",
    "u RLIKE '(?i)hello'", "u RLIKE '[^a-z]$'", r"u RLIKE r'^\S+$'", "u RLIKE r'(ab|12)+'",
    "u RLIKE ''", "regexp_like(u, 'b')", "regexp(u, 'b')", "u RLIKE r'😀.😀'",
    r"u RLIKE r'[\w,]{6,}'", r"regexp_extract(u, r'([a-z]+)(\d*)', 2)",
    r"regexp_extract(u, r'([a-z]+)(\d*)')", "regexp_extract(u, r'(x)?b', 1)",
    "regexp_extract(u, r'^.*$', 0)", "regexp_extract(u, r'.+?', 0)",
    "regexp_extract(u, r'o$', 0)", r"regexp_replace(u, r'\d', '#')",
    "regexp_replace(u, r'([a-z])([a-z])', '$2$1')", r"regexp_replace(u, r'(a)|b', r'<$1\$>')",
    "regexp_replace(u, r'$', '!')", "regexp_replace(u, r'.', 'z')",
    "regexp_replace(u, r'^', '>')", "regexp_count(u, r'[ab]')", r"regexp_substr(u, r'\d+')",
    "u LIKE '%b%'", "u ILIKE 'HELLO%'", "u ILIKE '%école'", "u NOT ILIKE '%É%'",
    "u LIKE '%!_%' ESCAPE '!'", "u LIKE 'a_b%' ESCAPE '/'", r"s LIKE '%\\_%'", "like(u, 'a%')",
    "ilike(u, 'A%')",
)  # fmt: skip

CONDITIONALS = (
    'nullif(i32, 7)', 'ifnull(i32, 5)', 'nvl(s, u)', 'nvl2(i8, s, u)', 'nvl2(b, i32, i64)',
    'if(b, s, u)', 'isnull(s)', 'isnotnull(s)', 'isnan(f64)', 'isnan(f32)', 'nanvl(f64, 1.5D)',
    'nanvl(f64, f32)', 'zeroifnull(i32)', 'nullifzero(i32)', 'equal_null(s, u)',
    "decode(i32, 1, 'one', 7, 'seven', 'other')", "decode(s, NULL, 'none', 'x', 'ex')",
    "decode(i32, 1, 'one')", 'greatest(i8, i32, k)', 'least(s, u)', 'greatest(f32, f64)',
)  # fmt: skip

NUMBERS = (
    'sign(i32)', 'sign(f64)', 'sign(dec)', 'signum(f32)', 'ceil(f32)', 'floor(f32)',
    'ceiling(dec)', 'bround(f64)', 'bround(f64, 1)', 'bround(dec, 1)', 'bround(dec)',
    'bround(i32, -1)', 'bround(f32, 1)', 'round(f32, 1)', 'round(f32)', 'round(dec, -1)',
    'sqrt(f64)', 'sqrt(i32)', 'sqrt(dec)', 'rint(f64)', 'rint(dec)', 'degrees(f64)',
    'radians(f64)', 'radians(i32)', 'mod(i32, 3)', 'mod(i64, k)', 'pmod(i32, 3)', 'pmod(i64, -3)',
    'pmod(i32, k)', 'pmod(f64, 3)', 'pmod(f64, f32)', 'pmod(dec, 2)', 'pmod(dec, -0.7)',
    'i64 DIV 3', 'i64 DIV k', 'i32 DIV 2', 'i32 & k', 'i64 | 5', 'i32 ^ i8', '~i32', '~i8',
    'i32 << 3', 'i64 >> 2', 'shiftleft(i32, 33)', 'shiftleft(i8, 3)', 'shiftright(i64, 65)',
    'shiftright(i32, k)', 'shiftrightunsigned(i32, 3)', 'shiftrightunsigned(i64, 3)',
    'bit_count(i32)', 'bit_count(i8)', 'bit_count(b)', 'bit_get(i32, 1)', 'getbit(i8, 7)',
    'bit_get(i64, 63)', 'factorial(k)', 'width_bucket(f64, 0, 10, 5)',
    'width_bucket(k, 10, -2, 4)', 'width_bucket(f64, 1, 1, 4)', 'positive(i32)', 'negative(f64)',
    'try_add(i64, 1)', 'try_divide(i32, k)', 'try_mod(i32, k)', 'try_subtract(i64, 1)',
    'try_multiply(i64, i64)',
)  # fmt: skip

TIMES = (
    'year(d)', 'year(ts)', 'year(n)', 'quarter(d)', 'month(ts)', 'day(d)', 'dayofmonth(ts)',
    'dayofweek(d)', 'weekday(d)', 'dayofyear(ts)', 'weekofyear(d)', 'weekofyear(ts)',
    'dayname(d)', 'monthname(ts)', 'hour(ts)', 'minute(ts)', 'second(ts)', 'hour(n)', 'minute(n)',
    'hour(d)', 'extract(YEAR FROM d)', 'extract(DOW FROM ts)', 'extract(DOW_ISO FROM ts)',
    'extract(WEEK FROM ts)', 'extract(DOY FROM d)', 'extract(SECOND FROM ts)',
    'extract(HOUR FROM n)', 'extract(YEAROFWEEK FROM d)', "date_part('MONTH', ts)",
    "date_part('seconds', n)", 'date_add(d, 5)', 'date_add(ts, k)', 'date_add(n, 1)',
    'date_sub(d, 31)', 'date_sub(d, k)', "datediff(d, DATE '2024-01-01')", 'datediff(ts, d)',
    'date_diff(n, ts)', 'add_months(d, 1)', 'add_months(d, -13)', 'add_months(ts, k)',
    "months_between(ts, TIMESTAMP '2024-02-29 10:00:00')", "months_between(d, DATE '2024-02-29')",
    'months_between(ts, d)', 'months_between(ts, d, false)', 'months_between(n, ts)',
    'last_day(d)', 'last_day(ts)', "next_day(d, 'Mon')", "next_day(ts, 'sunday')",
    "next_day(d, 'TU')", "next_day(d, 'xx')", 'make_date(2024, 2, k)', 'make_date(k, 1, 1)',
    'make_timestamp(2024, 3, 31, 2, 30, 15.5)', 'make_timestamp(2024, 12, 31, 23, 59, 60)',
    'make_timestamp(2024, 10, 27, k, 30, 0)', 'make_timestamp(1850, k, 1, 1, 1, dec)',
    'make_timestamp_ntz(2024, 10, 27, 2, 30, 0)', 'unix_date(d)', 'date_from_unix_date(i8)',
    'unix_seconds(ts)', 'unix_millis(ts)', 'unix_micros(ts)', 'unix_timestamp(ts)',
    'unix_timestamp(d)', 'unix_timestamp(n)', 'to_unix_timestamp(ts)', 'timestamp_seconds(i32)',
    'timestamp_millis(i32)', 'timestamp_micros(i64)', 'from_unixtime(i32)',
    "from_unixtime(k, 'yyyy/MM/dd HH-mm')", "date_trunc('YEAR', ts)", "date_trunc('quarter', ts)",
    "date_trunc('MON', ts)", "date_trunc('week', ts)", "date_trunc('DAY', ts)",
    "date_trunc('HOUR', ts)", "date_trunc('MINUTE', ts)", "date_trunc('SECOND', ts)",
    "date_trunc('MILLISECOND', ts)", "date_trunc('MICROSECOND', ts)", "date_trunc('DD', n)",
    "date_trunc('YEAR', d)", "date_trunc('xx', ts)", "trunc(d, 'YEAR')", "trunc(d, 'MM')",
    "trunc(d, 'Q')", "trunc(d, 'QUARTER')", "trunc(d, 'week')", "trunc(ts, 'MON')",
    "trunc(n, 'YY')", 'to_date(s)', 'to_date(u)', 'to_date(w)', "to_date(u, 'yyyy-MM-dd')",
    'to_timestamp(w)', "to_timestamp(w, 'dd.MM.yyyy HH:mm')",
    r"to_timestamp(w, 'yyyy-M-d H:m:s\'Z\'')", "to_timestamp(s, 'HHmm')", 'to_timestamp(ts)',
    'to_timestamp(d)', 'to_date(ts)', 'to_date(d)', 'to_timestamp_ntz(w)', 'to_timestamp_ltz(w)',
    'try_to_timestamp(w)', 'try_to_date(w)', "date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
    "date_format(ts, 'd MMM yyyy h:mm a')", "date_format(d, 'E dd.MM.yyyy')",
    r"date_format(n, 'yyyyMMdd\'T\'HHmm')", "date_format(ts, 'H:m:s.S')",
    "to_unix_timestamp(w, 'yyyy-MM-dd')", "datepart('DAY', d)", 'tinyint(i32)', 'smallint(i64)',
    'float(f64)', 'decimal(i32)', 'binary(s)', 'make_timestamp_ltz(2024, 10, 27, 2, 30, 0)',
    'dateadd(d, k)', "rlike(u, 'b')", 'date(ts)', 'int(f32)', 'string(i32)', 'double(i32)',
    'timestamp(w)', 'boolean(i32)', 'date(w)', 'bigint(s)',
)  # fmt: skip

TRY = {
    "-i32": "try_subtract(0, i32)",
    "abs(i32)": "IF(i32 > -2147483648, abs(i32), NULL)",
    **{
        f"{name}({column})": f"IF(isnan({column}) OR abs({column}) < 9E18, {name}({column}), NULL)"
        for name in ("ceil", "floor", "ceiling")
        for column in ("f32", "f64")
    },
    "round(i32, -1)": "IF(abs(i32 / 2) > 1000000000, NULL, round(i32, -1))",
    "to_unix_timestamp(w, 'yyyy-MM-dd')": "unix_seconds(try_to_timestamp(w, 'yyyy-MM-dd'))",
    "next_day(d, 'xx')": "NULL",
    "bround(i32, -1)": "IF(abs(i32 / 2) > 1000000000, NULL, bround(i32, -1))",
    "mod(i64, k)": "try_mod(i64, k)",
    "pmod(i32, k)": "IF(k = 0, NULL, pmod(i32, k))",
    "pmod(f64, f32)": "IF(f32 = 0, NULL, pmod(f64, f32))",
    "i64 DIV k": "IF(k = 0, NULL, i64 DIV k)",
    "make_date(2024, 2, k)": "IF(k BETWEEN 1 AND 29, make_date(2024, 2, k), NULL)",
    "make_timestamp(2024, 10, 27, k, 30, 0)": "try_make_timestamp(2024, 10, 27, k, 30, 0)",
    "make_timestamp(1850, k, 1, 1, 1, dec)": "try_make_timestamp(1850, k, 1, 1, 1, dec)",
    "to_date(s)": "try_to_date(s)",
    "to_date(u)": "try_to_date(u)",
    "to_date(w)": "try_cast(w AS DATE)",
    "to_date(u, 'yyyy-MM-dd')": "try_to_date(u, 'yyyy-MM-dd')",
    "to_timestamp(w)": "try_to_timestamp(w)",
    "to_timestamp(w, 'dd.MM.yyyy HH:mm')": "try_to_timestamp(w, 'dd.MM.yyyy HH:mm')",
    r"to_timestamp(w, 'yyyy-M-d H:m:s\'Z\'')": r"try_to_timestamp(w, 'yyyy-M-d H:m:s\'Z\'')",
    "to_timestamp(s, 'HHmm')": "try_to_timestamp(s, 'HHmm')",
    "to_timestamp_ntz(w)": "try_cast(w AS TIMESTAMP_NTZ)",
    "to_timestamp_ltz(w)": "try_to_timestamp(w)",
    "int(f32)": "try_cast(f32 AS INT)",
    "tinyint(i32)": "try_cast(i32 AS TINYINT)",
    "smallint(i64)": "try_cast(i64 AS SMALLINT)",
    "decimal(i32)": "try_cast(i32 AS DECIMAL)",
    "timestamp(w)": "try_cast(w AS TIMESTAMP)",
    "date(w)": "try_cast(w AS DATE)",
    "bigint(s)": "try_cast(s AS BIGINT)",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One expression: its kind, Plait's text, and Spark's."""

    kind: str
    text: str
    tried: str


def cases() -> list[Case]:
    """Everything that is compared, once."""
    return list(dict.fromkeys(_cases()))


def _cases() -> Iterator[Case]:
    for column, type_ in itertools.product(EVERY, TYPES):
        tried = f"try_cast({column} AS {type_})"
        yield Case("casts", f"CAST({column} AS {type_})", tried)
        yield Case("casts", f"TRY_CAST({column} AS {type_})", tried)
    for literal in LITERALS:
        yield Case("literals", literal, literal)
    for (op, tried), left, right in itertools.product(TRIED.items(), NUMBERS_OF, NUMBERS_OF):
        yield Case("operators", f"{left} {op} {right}", f"{tried}({left}, {right})")
    for op, left, right in itertools.product(("=", "<", ">=", "<=>", "<>"), NUMBERS_OF, NUMBERS_OF):
        yield Case("operators", f"{left} {op} {right}", f"{left} {op} {right}")
    for text in OPERATORS:
        yield Case("operators", text, TRY.get(text, text))
    for text in (*FUNCTIONS, *CONDITIONALS, *NUMBERS, *TEXTS, *TIMES):
        yield Case("functions", text, TRY.get(text, text))


def names_of(text: str) -> set[str]:
    """The functions that a text calls, in small letters.

    >>> sorted(names_of("Lower(trim(s)) || 'f(x)'"))
    ['lower', 'trim']
    """
    return {name.lower() for name in re.findall(r"([A-Za-z_]\w*)\(", re.sub(r"'[^']*'", "", text))}

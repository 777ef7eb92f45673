"""CSV files: types, malformed rows and their reasons."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from plait.errors import SourceError, TooManyBadRows, UnknownColumn
from plait.local.sources.csv import CsvSource


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def rows_of(source: CsvSource, columns: list[str] | None = None) -> list[dict[str, object]]:
    return [row for chunk in source.scan(columns) for row in chunk.rows.to_pylist()]


def reasons(source: CsvSource) -> list[tuple[int, str]]:
    return [(row.line, row.reason) for row in source.bad.rows]


def test_types_come_from_the_first_rows(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv",
        "ts,zoned,day,sym,price,size,open,note\n"
        "2024-01-01T09:00:00,2024-01-01T09:00:00Z,2024-01-01,A,1.5,3,true,\n"
        "2024-01-01 09:00:01.25,2024-01-01T09:00:00+02:00,2024-01-02,B,2,,false,\n",
    )
    source = CsvSource([path])
    assert {f.name: str(f.type) for f in source.schema} == {
        "ts": "timestamp[us]",
        "zoned": "timestamp[us, tz=UTC]",
        "day": "date32[day]",
        "sym": "string",
        "price": "double",
        "size": "int64",
        "open": "bool",
        "note": "string",
    }
    rows = rows_of(source, ["sym", "size", "note"])
    assert rows == [
        {"sym": "A", "size": 3, "note": None},
        {"sym": "B", "size": None, "note": None},
    ]
    assert len(source.bad) == 0


def test_whole_seconds_may_be_followed_by_fractions(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "ts,k\n2024-01-01 09:00:00,1\n2024-01-01 09:00:00.5,2\n")
    source = CsvSource([path], block_bytes=30)
    assert source.schema.field("ts").type == pa.timestamp("us")
    assert len(rows_of(source)) == 2
    nanos = write(tmp_path / "n.csv", "ts,k\n2024-01-01 09:00:00.123456789,1\n")
    assert CsvSource([nanos]).schema.field("ts").type == pa.timestamp("ns")


def test_types_can_be_given(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "k,v\n1,2\n2,2.5\n")
    source = CsvSource([path], columns={"k": pa.string(), "v": pa.decimal128(5, 1)})
    assert [str(f.type) for f in source.schema] == ["string", "decimal128(5, 1)"]
    assert rows_of(source)[0]["k"] == "1"
    with pytest.raises(UnknownColumn, match="no column 'w' to give a type to"):
        CsvSource([path], columns={"w": pa.string()})


@pytest.mark.parametrize("block_bytes", [24, 60, 1 << 20])
def test_malformed_rows_are_set_aside_with_their_reason(tmp_path: Path, block_bytes: int) -> None:
    text = 'k,v,s\n1,1.5,a\n2,2.5,"b\nc"\n3,x,d\n\n4,4.5\n5,5.5,e,f\nsix,6.5,g\n7,7.5,"h, ""i"""\n'
    source = CsvSource([write(tmp_path / "t.csv", text)], block_bytes=block_bytes)
    rows = rows_of(source)
    assert [row["k"] for row in rows] == [1, 2, 7]
    assert [row["s"] for row in rows] == ["a", "b\nc", 'h, "i"']
    assert reasons(source) == [
        (5, "v is 'x', not double"),
        (7, "2 fields instead of 3"),
        (8, "4 fields instead of 3"),
        (9, "k is 'six', not int64"),
    ]
    assert source.bad.rows[2].text == "5,5.5,e,f"
    assert source.bad.rows[0].file.endswith("t.csv")


def test_a_quotation_mark_that_is_not_closed_costs_one_row(tmp_path: Path) -> None:
    text = 'k,s\n1,a\n2,"b\n3,c\n4,"d"\n5,e\n'
    source = CsvSource([write(tmp_path / "t.csv", text)])
    assert [row["k"] for row in rows_of(source)] == [1, 3, 4, 5]
    assert reasons(source) == [(3, "a quotation mark is not closed")]


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    source = CsvSource([write(tmp_path / "t.csv", b"k,s\n1,a\n2,\xff\xfe\n3,c\n")], block_bytes=9)
    assert [row["k"] for row in rows_of(source)] == [1, 3]
    assert reasons(source) == [(3, r"s is '\\xff\\xfe', not string")]


def test_a_byte_that_is_no_utf8_among_the_first_rows_costs_one_row(tmp_path: Path) -> None:
    source = CsvSource([write(tmp_path / "t.csv", b"k,s\n1,a\n2,\xff\n3,c\n4,\xfe,\n")])
    assert source.schema.field("s").type == pa.string()
    assert [row["s"] for row in rows_of(source)] == ["a", "c"]
    assert reasons(source) == [(3, r"s is '\\xff', not string"), (5, "3 fields instead of 2")]


@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_whole_numbers_beyond_int64_are_exact(tmp_path: Path, block_bytes: int) -> None:
    text = "k,v\n18446744073709551615,1\n18446744073709551614,2\n-18446744073709551615,3\n7,4\n"
    source = CsvSource([write(tmp_path / "t.csv", text)], block_bytes=block_bytes)
    assert source.schema.field("k").type == pa.decimal128(38, 0)
    keys = [2**64 - 1, 2**64 - 2, 1 - 2**64, 7]
    assert [row["k"] for row in rows_of(source)] == keys
    assert len(source.bad) == 0


@pytest.mark.parametrize(
    ("first", "type_"),
    [
        (["1", "9223372036854775807", "-9223372036854775808"], pa.int64()),
        (["1", "9223372036854775808"], pa.decimal128(38, 0)),
        (["1", "-9223372036854775809", "x"], pa.decimal128(38, 0)),
        (["1"] * 20 + ["9223372036854775808", "x"], pa.decimal128(38, 0)),
        (["1", "9" * 38], pa.decimal128(38, 0)),
        (["1", "9" * 39], pa.string()),
        (["1", "2", "9" * 39, "x"], pa.string()),
        (["1.5", "18446744073709551615"], pa.float64()),
        (["1e3", "18446744073709551615", "2", "x"], pa.float64()),
        (["nan", "18446744073709551615"], pa.float64()),
    ],
)
def test_the_type_of_large_numbers(tmp_path: Path, first: list[str], type_: pa.DataType) -> None:
    text = "k,v\n" + "".join(f"{value},1\n" for value in first)
    assert CsvSource([write(tmp_path / "t.csv", text)]).schema.field("k").type == type_


def test_a_number_that_comes_later_and_does_not_fit_is_set_aside(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", f"k\n1\n2\n9223372036854775808\n3\n{2**64 - 1}\n")
    source = CsvSource([path], block_bytes=4)
    assert source.schema.field("k").type == pa.int64()
    assert [row["k"] for row in rows_of(source)] == [1, 2, 3]
    assert reasons(source) == [
        (4, "k is '9223372036854775808', not int64"),
        (6, "k is '18446744073709551615', not int64"),
    ]
    wide = write(tmp_path / "w.csv", f"k\n{2**64 - 1}\n2\n{'9' * 39}\n1.5\n3\n")
    source = CsvSource([wide], block_bytes=4)
    assert [row["k"] for row in rows_of(source)] == [2**64 - 1, 2, 3]
    assert [line for line, _ in reasons(source)] == [4, 5]


def test_a_second_scan_of_a_file_with_too_many_malformed_rows_also_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "k\n" + "1\n" * 40 + "x\n" * 5)
    source = CsvSource([path], max_bad_rows=1, block_bytes=82)
    for _ in range(2):
        with pytest.raises(TooManyBadRows):
            rows_of(source)


def test_the_limit_names_file_reasons_and_option(tmp_path: Path) -> None:
    text = "k\n" + "1\n" * 10 + "x\n" * 5
    path = write(tmp_path / "t.csv", text)
    source = CsvSource([path], max_bad_rows=3, block_bytes=22)
    with pytest.raises(TooManyBadRows) as caught:
        rows_of(source)
    assert str(caught.value) == (
        f"{path} has more than 3 malformed rows, among them line 12: k is 'x', not int64; "
        "line 13: k is 'x', not int64; line 14: k is 'x', not int64; "
        "mend the file, or allow more with --max-bad-rows (in Python: max_bad_rows)"
    )
    none = CsvSource([path], max_bad_rows=0, block_bytes=22)
    with pytest.raises(TooManyBadRows, match=r"has a malformed row, line 12: k is 'x'"):
        rows_of(none)


def test_a_row_is_judged_by_all_columns_and_reported_once(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "k,v\n1,1\n2,2\n3,x\n")
    source = CsvSource([path], block_bytes=8)
    assert [row["k"] for row in rows_of(source, ["k"])] == [1, 2]
    assert [row["k"] for row in rows_of(source, ["k"])] == [1, 2]
    assert reasons(source) == [(4, "v is 'x', not int64")]
    quick = [row for chunk in source.scan(["k"], report=False) for row in chunk.rows.to_pylist()]
    assert [row["k"] for row in quick] == [1, 2, 3], "a first look reads only what it needs"


def test_several_files_compressed_and_in_another_order_of_columns(tmp_path: Path) -> None:
    first = write(tmp_path / "a.csv.gz", gzip.compress(b"k,s\n1,a\n"))
    second = write(tmp_path / "b.csv.gz", gzip.compress(b"\xef\xbb\xbfs,k\nb,2\n"))
    source = CsvSource([first, second])
    assert source.size is None
    assert rows_of(source) == [{"k": 1, "s": "a"}, {"k": 2, "s": "b"}]
    other = write(tmp_path / "c.csv", "k,z\n1,2\n")
    with pytest.raises(SourceError, match=r"c\.csv has the columns k, z, but .* has k, s"):
        rows_of(CsvSource([first, other]))


def test_positions_agree_between_scans(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "k,v\n" + "".join(f"{i},{i}\n" for i in range(1000)))
    source = CsvSource([path], block_bytes=500)
    every = [chunk.position for chunk in source.scan()]
    assert every == [chunk.position for chunk in source.scan(["k"], report=False)]
    assert every == sorted(every)
    assert every[-1] == source.size == path.stat().st_size


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\n", "is empty"),
        ("k,,v\n1,2,3\n", "column 2 of .* has no name"),
        ("k,k\n1,2\n", "has two columns 'k'"),
        ("k,v\n", "has a header but no rows, so the types of its columns are unknown: k, v"),
    ],
)
def test_headers_that_do_not_do(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        CsvSource([write(tmp_path / "t.csv", text)])


def test_binary_file_and_truncated_archive(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is no text in UTF-8"):
        CsvSource([write(tmp_path / "t.csv", b"\x89PNG\xff\xfe\n\x00\x01\n")])
    packed = gzip.compress(b"k\n" + b"1\n" * 100_000)
    with pytest.raises(SourceError, match="cannot be read: Compressed file ended"):
        rows_of(CsvSource([write(tmp_path / "t.csv.gz", packed[:-20])]))

"""CSV records, for every size of block, against Python's csv module."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzz.definitions import csv_records

from plait.errors import SourceError
from plait.local.sources.csv import CsvSource
from plait.local.sources.csv_records import line_ends, read_records, records

MEAN = st.text(st.sampled_from('ab1",,""\n\n\r x'), max_size=40)
"""Texts of little but marks, delimiters and line ends."""


def cut(path: Path, block_bytes: int) -> list[tuple[int, bytes | None]]:
    """The records as the blocks have them: line and text, no text where marks are broken."""
    found: list[tuple[int, bytes | None]] = []
    end = 0
    for block in read_records(path, ",", block_bytes=block_bytes):
        end += len(block.data)
        assert block.end in (end, end + 3), "the byte order mark counts"
        if block.fault:
            found.append((block.line, None))
            continue
        starts = [*records(block.data)[0].tolist(), len(block.data)]
        for start, stop in pairwise(starts):
            line = block.line + line_ends(block.data[:start])
            found.append((line, block.data[start:stop]))
    assert end in (path.stat().st_size, path.stat().st_size - 3)
    return found


@given(MEAN, st.booleans())
@example('a,"b\n\nc', False)
@example('"\r\n"x\r"', False)
@example('"a"\n"b"c\n"d', True)
@example('"a\nb",c', False)
def test_oracle_records_do_not_depend_on_blocks(text: str, marked: bool) -> None:
    data = (b"\xef\xbb\xbf" if marked else b"") + text.encode()
    expected = csv_records(data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(data)
        for block_bytes in range(1, len(data) + 2):
            found = cut(path, block_bytes)
            assert [line for line, _ in found] == [r.line for r in expected]
            for (_, record), want in zip(found, expected, strict=True):
                fields = csv_records(record)[0].fields if record is not None else None
                assert fields == want.fields


@given(MEAN, st.integers(1, 50))
@example('1,"a"b,2\n1,2,3\n"', 1)
@example('1,2,3\n1,2\n,,\n""\n\n"",,\n', 7)
def test_oracle_every_record_is_a_row_or_set_aside(text: str, block_bytes: int) -> None:
    data = b"x,y,z\n1,2,3\n" + text.encode()
    columns = dict.fromkeys("xyz", pa.string())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(data)
        source = CsvSource([path], columns=columns, block_bytes=block_bytes)
        rows = [tuple(row.values()) for c in source.scan() for row in c.rows.to_pylist()]
    records = csv_records(data)[1:]
    right = [r.fields for r in records if r.fields is not None and len(r.fields) == 3]
    assert rows == [tuple(field or None for field in fields) for fields in right]
    wrong = [r.line for r in records if r.fields is None or len(r.fields) != 3]
    assert [row.line for row in source.bad.rows] == wrong


def test_a_long_quoted_field_with_lines_like_rows_is_one_field(tmp_path: Path) -> None:
    field = "".join(f"{i},row {i}\n" for i in range(2000))
    path = tmp_path / "t.csv"
    path.write_text(f'k,s\n1,a\n2,"{field}"\n3,c\n')
    for block_bytes in (100, 10_000, 1 << 20):
        source = CsvSource([path], block_bytes=block_bytes)
        rows = [row for chunk in source.scan() for row in chunk.rows.to_pylist()]
        assert [row["k"] for row in rows] == [1, 2, 3]
        assert rows[1]["s"] == field
        assert len(source.bad) == 0


@pytest.mark.slow
def test_a_quoted_field_longer_than_a_block_of_default_size(tmp_path: Path) -> None:
    field = "".join(f"{i},row {i} looks like one\n" for i in range(430_000))
    path = tmp_path / "t.csv"
    path.write_text(f'k,s\n1,a\n2,"{field}"\n3,c\n')
    source = CsvSource([path])
    assert [k for c in source.scan(["k"]) for k in c.rows.column(0).to_pylist()] == [1, 2, 3]
    assert len(source.bad) == 0


@pytest.mark.parametrize("block_bytes", [1, 3, 8, 1 << 20])
def test_a_mark_that_is_not_closed_at_the_end_costs_its_line(
    tmp_path: Path, block_bytes: int
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'k,s\n1,a\n2,"b\r\n3,c\n4,"d"\n5,"e')
    source = CsvSource([path], block_bytes=block_bytes)
    rows = [row for chunk in source.scan() for row in chunk.rows.to_pylist()]
    assert [row["k"] for row in rows] == [1, 3, 4]
    assert [(row.line, row.reason, row.text) for row in source.bad.rows] == [
        (3, "a quotation mark is not closed", '2,"b'),
        (6, "a quotation mark is not closed", '5,"e'),
    ]


def test_text_after_a_closing_mark_is_malformed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('k,s\n1,"a"b\n2,"c"\n3,d"e\n')
    source = CsvSource([path])
    assert [row["s"] for c in source.scan() for row in c.rows.to_pylist()] == ["c", 'd"e']
    assert [(row.line, row.reason) for row in source.bad.rows] == [
        (2, "text follows a closing quotation mark")
    ]


def test_line_ends_of_all_kinds(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"k\r1\r\n2\r\r3,3\n4,4")
    for block_bytes in range(1, 20):
        source = CsvSource([path], block_bytes=block_bytes)
        assert [k for c in source.scan() for k in c.rows.column(0).to_pylist()] == [1, 2]
        assert [row.line for row in source.bad.rows] == [5, 6]


def test_a_record_that_memory_cannot_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('k,s\n1,a\n2,"' + "b" * 1000 + "\n3,c\n" * 1000)
    source = CsvSource([path], block_bytes=64, max_record_bytes=1 << 20)
    assert sum(chunk.rows.num_rows for chunk in source.scan()) == 1001
    small = CsvSource([path], block_bytes=64, max_record_bytes=500)
    with pytest.raises(
        SourceError, match=r"t\.csv:3 begins a row of more than 500 bytes, in quotation marks"
    ):
        list(small.scan())


@pytest.mark.parametrize("block_bytes", [1, 5, 1 << 20])
def test_header_after_empty_lines_with_line_ends_in_a_name(
    tmp_path: Path, block_bytes: int
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\r\n\n"a\nb",c\x0cd\n1,2\n')
    source = CsvSource([path], block_bytes=block_bytes)
    assert source.schema.names == ["a\nb", "c\x0cd"]
    assert sum(chunk.rows.num_rows for chunk in source.scan()) == 1
    broken = tmp_path / "b.csv"
    broken.write_bytes(b'"a,b\n1,2\n')
    with pytest.raises(SourceError, match=r"the header of .*b\.csv is malformed"):
        CsvSource([broken], block_bytes=block_bytes)

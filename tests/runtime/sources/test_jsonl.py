"""JSON lines: types, malformed lines and their reasons."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from plait.errors import SourceError, TooManyBadRows
from plait.runtime.sources.jsonl import JsonlSource


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def rows_of(source: JsonlSource, columns: list[str] | None = None) -> list[dict[str, object]]:
    return [row for chunk in source.scan(columns) for row in chunk.rows.to_pylist()]


def reasons(source: JsonlSource) -> list[tuple[int, str]]:
    return [(row.line, row.reason) for row in source.bad.rows]


def test_types_come_from_the_first_rows(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl",
        '{"ts": "2024-01-01T09:00:00", "zoned": "2024-01-01T09:00:00.5Z", "sym": "A", "x": 1}\n'
        "\n"
        '{"ts": "2024-01-01 09:00:01.25", "x": 2.5, "tags": ["a"], "nothing": null}\n',
    )
    source = JsonlSource([path])
    assert {f.name: str(f.type) for f in source.schema} == {
        "ts": "timestamp[us]",
        "zoned": "timestamp[us, tz=UTC]",
        "sym": "string",
        "x": "double",
        "tags": "list<item: string>",
        "nothing": "string",
    }
    assert rows_of(source, ["x", "sym"]) == [{"x": 1.0, "sym": "A"}, {"x": 2.5, "sym": None}]
    assert len(source.bad) == 0


def test_types_can_be_given(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", '{"k": 1, "d": "1.25"}\n')
    source = JsonlSource([path], columns={"d": pa.decimal128(5, 2), "later": pa.int64()})
    assert [str(f.type) for f in source.schema] == ["int64", "decimal128(5, 2)", "int64"]
    assert rows_of(source)[0]["later"] is None


@pytest.mark.parametrize("block_bytes", [40, 1 << 20])
def test_malformed_lines_are_set_aside_with_their_reason(tmp_path: Path, block_bytes: int) -> None:
    lines = [
        '{"ts": "2024-01-01T09:00:00", "x": 1}',
        '{"ts": "2024-01-01T09:00:01", "x": 2}',
        '{"ts": "2024-01-01T09:00:02", "x": "three"}',
        '{"ts": "2024-01-01T09:00:03", "x": 4',
        "[5]",
        "",
        "null",
        '{"ts": "yesterday", "x": 6}',
        '{"x": 7, "x": 8}',
        '{"x": NaN}',
        '{"x": 1.5}',
        '{"x": 10} {"x": 11}',
        '{"x": 12, "new": true}\r',
    ]
    path = write(tmp_path / "t.jsonl", "\n".join(lines))
    source = JsonlSource([path], block_bytes=block_bytes, columns={"x": pa.int64()})
    assert [row["x"] for row in rows_of(source, ["x"])] == [1, 2, 12]
    assert reasons(source) == [
        (3, 'x is "three", not int64'),
        (4, "no JSON: Expecting ',' delimiter at character 37"),
        (5, "an array, not an object"),
        (7, "null, not an object"),
        (8, 'ts is "yesterday", not timestamp[us]'),
        (9, "no JSON: the field 'x' is there twice"),
        (10, "no JSON: NaN is no number"),
        (11, "x is 1.5, not int64"),
        (12, "no JSON: Extra data at character 11"),
    ]
    assert source.bad.rows[0].text == lines[2]


def test_a_type_that_changes_among_the_first_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", '{"x": 1}\n{"x": 2}\n{"x": "b"}\n{"x": 3}\n')
    source = JsonlSource([path])
    assert source.schema.field("x").type == pa.int64()
    assert [row["x"] for row in rows_of(source)] == [1, 2, 3]


def test_the_limit(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", '{"x": 1}\n' + "{\n" * 3)
    with pytest.raises(TooManyBadRows, match=r"more than 2 malformed rows, among them line 2: no"):
        rows_of(JsonlSource([path], max_bad_rows=2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" \n", "is empty; write one JSON object per line"),
        ('[{"x": 1}]', r"is one JSON array, not a line per row; .* jq -c '\.\[\]'"),
        ('{\n  "x": 1\n}\n', "has no JSON object in a line: no JSON: Expecting"),
    ],
)
def test_files_that_are_no_json_lines(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        JsonlSource([write(tmp_path / "t.json", text)])

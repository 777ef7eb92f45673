"""JSON lines: types, malformed lines and their reasons."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from plait.errors import SourceError, TooManyBadRows
from plait.local.sources.jsonl import JsonlSource


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


@pytest.mark.parametrize("block_bytes", [1, 30, 1 << 20])
def test_whole_numbers_beyond_int64_are_exact(tmp_path: Path, block_bytes: int) -> None:
    numbers = [2**64 - 1, 2**64 - 2, -(2**64), 10**38 - 1, 7]
    path = write(tmp_path / "t.jsonl", "".join(f'{{"k": {n}, "v": 1.5}}\n' for n in numbers))
    source = JsonlSource([path], block_bytes=block_bytes)
    assert [str(f.type) for f in source.schema] == ["decimal128(38, 0)", "double"]
    assert [row["k"] for row in rows_of(source)] == numbers
    nested = write(tmp_path / "n.jsonl", f'{{"l": [1, {2**64}], "s": {{"x": {2**64 - 1}}}}}\n')
    source = JsonlSource([nested])
    assert rows_of(source) == [{"l": [1, 2**64], "s": {"x": 2**64 - 1}}]
    mixed = write(tmp_path / "m.jsonl", f'{{"k": {2**64}}}\n{{"k": 1.5}}\n')
    assert JsonlSource([mixed]).schema.field("k").type == pa.float64()


def test_a_number_that_comes_later_and_does_not_fit_is_set_aside(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", f'{{"k": 1}}\n{{"k": {2**63}}}\n{{"k": {2**63 - 1}}}\n')
    source = JsonlSource([path], block_bytes=8)
    assert [row["k"] for row in rows_of(source)] == [1, 2**63 - 1]
    assert reasons(source) == [(2, "k is 9223372036854775808, not int64")]
    wide = write(tmp_path / "w.jsonl", f'{{"k": {2**63}}}\n{{"k": {10**38}}}\n{{"k": 1}}\n')
    source = JsonlSource([wide], block_bytes=8)
    assert [row["k"] for row in rows_of(source)] == [2**63, 1]
    assert reasons(source) == [(2, f"k is {10**38}, not decimal128(38, 0)"[:200])]


@pytest.mark.slow
@pytest.mark.parametrize("block_bytes", [1, 100, 1 << 20])
def test_deep_nesting_is_set_aside_before_it_is_parsed(tmp_path: Path, block_bytes: int) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    objects = '{"y": ' * 100_000 + "1" + "}" * 100_000
    braces = "{" * 100_000
    quoted = '"' + "[" * 1000 + '"'
    levels = "[" * 127 + "]" * 127
    lines = [
        '{"x": 1}',
        *(f'{{"x": 2, "y": {y}}}' for y in (deep, objects, braces, quoted, levels)),
    ]
    path = write(tmp_path / "t.jsonl", "\n".join([*lines, deep, braces, '{"x": 3}']))
    code = (
        "import sys; from pathlib import Path\n"
        "from plait.local.sources.jsonl import JsonlSource\n"
        f"source = JsonlSource([Path(sys.argv[1])], block_bytes={block_bytes})\n"
        "print([x for c in source.scan(['x']) for x in c.rows.column(0).to_pylist()])\n"
        "print(sorted((row.line, row.reason) for row in source.bad.rows))"
    )
    # In a process of its own: what is tested against is the end of the process.
    ran = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    numbers, set_aside = ran.stdout.splitlines()
    assert numbers == "[1, 2, 2, 3]"
    reason = "nested deeper than 128 levels"
    assert set_aside == str([(n, reason) for n in (2, 3, 4, 7, 8)])


def test_the_depth_is_a_parameter(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", '{"x": 1}\n{"x": 2, "y": [1]}\n{"x": 3, "y": "[[["}\n')
    source = JsonlSource([path], max_depth=1)
    assert [row["x"] for row in rows_of(source)] == [1, 3]
    assert reasons(source) == [(2, "nested deeper than 1 levels")]


@pytest.mark.parametrize("block_bytes", [1, 40, 1 << 20])
def test_the_verdict_on_a_line_does_not_depend_on_its_neighbours(
    tmp_path: Path, block_bytes: int
) -> None:
    lines = [
        b'{"x": 1, "s": "a", "f": 0.5}',
        b'{"x": 2} {"x": 3}',
        b'{"x":',
        b" 4}",
        b"null",
        b'{"x": 5, "s": "\xff"}',
        b'{"x": 6, "other": 1, "other": 2}',
        b'{"x": 7, "s": "\\ud800"}',
        b'{"x": 8, "f": NaN}',
        b'\xef\xbb\xbf{"x": 9}',
        b"\x0c",
        b" \t\r",
        b'  {"x": 10}  ' + b" " * 20,
        b'{"x": 11}\r{"x": 12}',
        b'{"x": 13}',
    ]
    source = JsonlSource([write(tmp_path / "t.jsonl", b"\n".join(lines))], block_bytes=block_bytes)
    assert [row["x"] for row in rows_of(source)] == [1, 6, 8, 10, 13]
    assert [line for line, _ in reasons(source)] == [2, 3, 4, 5, 6, 8, 10, 11, 14]
    assert all(row.reason.isprintable() and row.text.encode() for row in source.bad.rows)


def test_the_types_come_from_the_first_lines_that_are_well_formed(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", b'\n\nx\n{"x": "\\ud800"}\n{"x": 1}\n')
    for block_bytes in (1, 12, 1 << 20):
        source = JsonlSource([path], block_bytes=block_bytes)
        assert [row["x"] for row in rows_of(source)] == [1]
        assert len(source.bad) == 2
    empty = write(tmp_path / "e.jsonl", "{}\n{}\n")
    with pytest.raises(SourceError, match="has objects without a field"):
        JsonlSource([empty])
    long = write(tmp_path / "l.jsonl", '{"x": 1}\n{"x": ' + "1" * 100 + "}\n")
    with pytest.raises(SourceError, match=r"l\.jsonl:2 begins a row of more than 50 bytes"):
        rows_of(JsonlSource([long], block_bytes=9, max_record_bytes=50))


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

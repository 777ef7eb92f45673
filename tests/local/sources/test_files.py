"""From paths to sources, and the errors for those that lead nowhere."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.errors import SourceError
from plait.local.sources import open_source


def parquet(path: Path, **columns: list[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def values(path: str | Path, column: str = "k") -> list[object]:
    return [v for c in open_source(path).scan([column]) for v in c.rows.column(0).to_pylist()]


def test_the_extension_says_how_to_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k\n1\n")
    (tmp_path / "a.tsv").write_text("k\tv\n1\t2\n")
    (tmp_path / "a.ndjson").write_text('{"k": 1}\n')
    parquet(tmp_path / "a.parquet", k=[1])
    for name in ("a.csv", "a.tsv", "a.ndjson", "a.parquet"):
        assert values(tmp_path / name) == [1]


def test_a_directory_or_a_pattern_in_the_order_of_names(tmp_path: Path) -> None:
    for number in (2, 1, 3):
        parquet(tmp_path / "d" / f"part-{number}.parquet", k=[number], v=["x"])
    (tmp_path / "d" / "_SUCCESS").touch()
    (tmp_path / "d" / ".part-1.parquet.crc").write_text("x")
    assert values(tmp_path / "d") == [1, 2, 3]
    assert values(f"{tmp_path}/d/part-[12].parquet") == [1, 2]
    assert values(f"{tmp_path}/**/*.parquet") == [1, 2, 3]
    assert open_source(tmp_path / "d").size == 3


def test_only_the_columns_asked_for(tmp_path: Path) -> None:
    source = open_source(parquet(tmp_path / "a.parquet", k=[1], v=["x"], w=[None]))
    (chunk,) = source.scan(["v", "k"])
    assert chunk.rows.schema.names == ["v", "k"]


def test_files_of_a_stream_need_the_same_columns(tmp_path: Path) -> None:
    parquet(tmp_path / "d" / "1.parquet", k=[1])
    parquet(tmp_path / "d" / "2.parquet", k=["x"])
    with pytest.raises(SourceError, match=r"'k' is string in .*2\.parquet, but int64 in .*1\."):
        open_source(tmp_path / "d")
    parquet(tmp_path / "d" / "2.parquet", j=[1])
    with pytest.raises(SourceError, match=r"2\.parquet lacks the column 'k'"):
        open_source(tmp_path / "d")
    (tmp_path / "d" / "2.csv").write_text("k\n1\n")
    with pytest.raises(SourceError, match=r"files of several formats: csv, parquet; choose some"):
        open_source(tmp_path / "d")


def test_what_cannot_be_read_is_named_with_a_remedy(tmp_path: Path) -> None:
    parquet(tmp_path / "trades.parquet", k=[1])
    (tmp_path / "text.parquet").write_text("k\n1\n")
    (tmp_path / "nothing.csv").touch()
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "sub").mkdir()
    cases = {
        "tradez.parquet": r"tradez\.parquet does not exist; did you mean 'trades\.parquet'",
        "no/t.csv": r"does not exist: there is no directory .*no; check the path",
        "*.jsonl": r"no file matches '.*\*\.jsonl'; check the pattern",
        "text.parquet": r"text\.parquet cannot be read as Parquet: .*; write the file again",
        "nothing.csv": r"nothing\.csv is empty; give a file with rows",
        "notes.txt": r"notes\.txt has no known extension; known extensions: \.parquet, \.csv",
        "sub": r"the directory .*sub has no data files; .* need a pattern, for example '.*sub/\*\*",
    }
    for name, message in cases.items():
        with pytest.raises(SourceError, match=message):
            open_source(f"{tmp_path}/{name}")


def test_a_damaged_parquet_file(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", k=list(range(100_000)))
    data = bytearray(path.read_bytes())
    data[10:5000] = b"\xff" * 4990
    path.write_bytes(data)
    with pytest.raises(SourceError, match=r"a\.parquet cannot be read as Parquet"):
        values(path)


def test_types_are_for_text_files_only(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", k=[1])
    with pytest.raises(SourceError, match="carries its own types"):
        open_source(path, columns={"k": pa.string()})

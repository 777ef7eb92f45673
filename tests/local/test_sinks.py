"""Results in files: complete or not at all."""

from __future__ import annotations

import json
import urllib.parse
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plait.errors import OutputExists, PlaitError
from plait.local import sinks
from plait.local.sinks import FileSink, late_paths
from plait.local.sources import open_source
from plait.machine.names import file_name

ROWS = pa.RecordBatch.from_pydict(
    {
        "ts": pa.array([0, 1_500_000, None], pa.timestamp("us")),
        "sym": ['a"b', "ü,\n", None],
        "x": [1.5, None, -2.0],
    }
)


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.jsonl", "out.ndjson"])
def test_what_is_written_can_be_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with FileSink(path, ROWS.schema) as sink:
        sink.write(ROWS.slice(0, 2))
        sink.write(ROWS.slice(2))
        assert not path.exists()
    assert sink.rows == 3
    source = open_source(path)
    table = pa.Table.from_batches([chunk.rows for chunk in source.scan()])
    assert table.to_pylist() == ROWS.to_pylist()
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.jsonl"])
def test_no_results_are_a_file_too(tmp_path: Path, name: str) -> None:
    with FileSink(tmp_path / name, ROWS.schema):
        pass
    if name == "out.csv":
        assert (tmp_path / name).read_text() == '"ts","sym","x"\n'
    elif name == "out.parquet":
        assert pq.read_table(tmp_path / name).schema == ROWS.schema
    else:
        assert (tmp_path / name).read_text() == ""


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.jsonl"])
def test_a_failure_leaves_nothing_behind(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyboardInterrupt), FileSink(tmp_path / name, ROWS.schema) as sink:
        sink.write(ROWS)
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_row_groups_are_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "ROW_GROUP_ROWS", 100)
    with FileSink(tmp_path / "out.parquet", ROWS.schema) as sink:
        for _ in range(50):
            sink.write(ROWS)
    metadata = pq.ParquetFile(tmp_path / "out.parquet").metadata
    assert metadata.num_rows == 150
    assert metadata.num_row_groups <= 3


def test_an_output_that_exists(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("mine")
    with pytest.raises(OutputExists, match=r"out\.csv exists; .* --overwrite"):
        FileSink(path, ROWS.schema)
    with pytest.raises(RuntimeError), FileSink(path, ROWS.schema, overwrite=True):
        raise RuntimeError
    assert path.read_text() == "mine", "a failed run replaces nothing"
    with FileSink(path, ROWS.schema, overwrite=True) as sink:
        sink.write(ROWS)
    assert pcsv.read_csv(path).num_rows == 3
    with pytest.raises(OutputExists), FileSink(tmp_path / "new.csv", ROWS.schema):
        (tmp_path / "new.csv").write_text("theirs")
    assert (tmp_path / "new.csv").read_text() == "theirs"


def test_paths_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "d.csv").mkdir()
    cases = {
        "out.txt": r"out\.txt has no known extension; known extensions: \.parquet, \.csv",
        "no/out.csv": r"there is no directory .*no; make it with: mkdir -p .*no",
        "d.csv": r"d\.csv is a directory; name a file in it",
    }
    for name, message in cases.items():
        with pytest.raises(PlaitError, match=message):
            FileSink(tmp_path / name, ROWS.schema)
    nested = pa.schema([("tags", pa.list_(pa.string()))])
    with pytest.raises(PlaitError, match=r"'tags' of type list.* has no form in CSV; write"):
        FileSink(tmp_path / "out.csv", nested)


def test_nested_values_in_json(tmp_path: Path) -> None:
    rows = pa.RecordBatch.from_pydict({"tags": [["a", None], None], "raw": [b"\xff", None]})
    with FileSink(tmp_path / "out.jsonl", rows.schema) as sink:
        sink.write(rows)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines == [{"tags": ["a", None], "raw": "/w=="}, {"tags": None, "raw": None}]


def test_string_views_in_csv(tmp_path: Path) -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(["a", None], pa.string_view())], names=["s"])
    with FileSink(tmp_path / "out.csv", rows.schema) as sink:
        sink.write(rows)
    assert (tmp_path / "out.csv").read_text() == '"s"\n"a"\n\n'


AWKWARD = st.text(st.sampled_from("a%./\\\0~2EFé\ud800 \n"), max_size=8) | st.text(max_size=300)


@given(st.lists(AWKWARD, max_size=5, unique=True), st.integers(70, 120))
@example(["..", "%2E.", "../x", "/x", "%2Fx", ".", "", "x" * 1000, "x" * 1001, "\0", "%00"], 120)
@example([("x" * 1000)[:10] + "%~", file_name("x" * 1000), "x" * 1000], 120)
def test_every_title_has_a_file_of_its_own_in_the_directory(titles: list[str], most: int) -> None:
    names = [file_name(title, most) for title in titles]
    assert len(set(names)) == len(names)
    for title, name in zip(titles, names, strict=True):
        assert len(name.encode()) <= most
        assert not set("/\0\\") & set(name)
        assert not name.startswith(".")
        if "~" not in name:
            raw = urllib.parse.unquote_to_bytes(name)
            assert raw == title.encode("utf-8", "surrogatepass")
    paths = late_paths("late", {title: title for title in titles})
    assert {path.parent for path in paths.values()} <= {Path("late")}
    beside = late_paths("out/late.csv", {title: title for title in titles})
    assert {path.parent for path in beside.values()} <= {Path("out")}
    assert len(set(beside.values())) == len(set(paths.values())) == len(titles)


def test_a_failing_end_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    message = r"out\.csv cannot be written: No space left"
    with pytest.raises(PlaitError, match=message), FileSink(tmp_path / "out.csv", ROWS.schema) as s:
        s.write(ROWS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "type_",
    [pa.month_day_nano_interval(), pa.large_binary(), pa.binary(3), pa.binary_view(), pa.uuid(),
     pa.large_list_view(pa.int64())],
    ids=str,
)  # fmt: skip
def test_what_has_no_form_in_csv_is_refused_before_the_run(
    tmp_path: Path, type_: pa.DataType
) -> None:
    with pytest.raises(PlaitError, match=r"'c' of type .* has no form in CSV; write"):
        FileSink(tmp_path / "out.csv", pa.schema([("c", type_)]))
    assert not list(tmp_path.iterdir())

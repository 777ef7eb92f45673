"""Generated streams have the rates, keys and disorder that their specs say."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import SupportsInt

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from plait.errors import OutputExists
from plait.testing.streams.generate import START, Format, generate, write_streams
from plait.testing.streams.specs import TYPES, Burst, Key, Payload, SpecError, StreamSpec
from plait_lab.workloads.feeds import clock


def _one(spec: StreamSpec, seconds: float = 100, seed: int = 1) -> pa.Table:
    return generate([spec], seconds, seed)[spec.name]


def _seconds(table: pa.Table) -> npt.NDArray[np.float64]:
    stamps = table.column("ts").cast(pa.int64()).to_numpy()
    return np.asarray((stamps - START) / 1e6)


def _near(count: SupportsInt, expected: float) -> bool:
    """Within five standard deviations of a Poisson count."""
    return bool(abs(int(count) - expected) <= 5 * expected**0.5)


def test_rate_schedule() -> None:
    at = _seconds(_one(StreamSpec("a", rate=((0, 50), (40, 200), (60, 0)))))
    assert _near(np.count_nonzero(at < 40), 2_000)
    assert _near(np.count_nonzero((at >= 40) & (at < 60)), 4_000)
    assert not np.any(at >= 60)


def test_arrivals_are_poisson() -> None:
    """The gaps of a Poisson process have their mean as standard deviation."""
    gaps = np.diff(_seconds(_one(StreamSpec("a", rate=200))))
    assert gaps.mean() == pytest.approx(1 / 200, rel=0.05)
    assert gaps.std() == pytest.approx(1 / 200, rel=0.05)


def test_bursts_and_silences() -> None:
    spec = StreamSpec("a", rate=100, bursts=(Burst(10, 2, 5),), silences=((50, 70),))
    at = _seconds(_one(spec))
    bursting = at % 10 < 2
    assert _near(np.count_nonzero(bursting & (at < 50)), 5 * 2 * 500)
    assert _near(np.count_nonzero(~bursting & (at < 50)), 5 * 8 * 100)
    assert not np.any((at >= 50) & (at < 70))


def test_disorder_is_bounded_and_as_frequent_as_asked() -> None:
    table = _one(StreamSpec("a", rate=500, disorder=2, out_of_order=0.3))
    behind = (clock(table.column("ts")) - START) / 1e6 - _seconds(table)
    assert 1.5 < behind.max() <= 2
    # A delayed row is out of order if another one overtook it, which nearly all are.
    assert np.mean(behind > 0) == pytest.approx(0.3, abs=0.02)


def test_in_order_unless_asked_otherwise() -> None:
    assert np.all(np.diff(_seconds(_one(StreamSpec("a", rate=500)))) >= 0)


def test_grain_makes_ties_within_the_bound_of_disorder() -> None:
    table = _one(StreamSpec("a", rate=500, grain=0.5, disorder=1, out_of_order=1))
    stamps = table.column("ts").cast(pa.int64()).to_numpy()
    assert np.all((stamps - START) % 500_000 == 0)
    assert (clock(table.column("ts")) - stamps).max() <= 1_000_000


def test_keys_are_even_or_follow_zipf() -> None:
    spec = StreamSpec("a", keys=(Key("even", 4), Key("zipf", 1000, zipf=1.0)), rate=1_000)
    table = _one(spec)
    even = np.bincount(table.column("even").to_numpy())
    assert len(even) == 4 and all(_near(n, table.num_rows / 4) for n in even)
    zipf = np.bincount(table.column("zipf").to_numpy(), minlength=1000)
    share = 1 / np.sum(1 / np.arange(1, 1001))
    assert _near(zipf[0], table.num_rows * share)
    assert _near(zipf[9], table.num_rows * share / 10)


def test_number_of_keys_changes_over_time() -> None:
    table = _one(StreamSpec("a", keys=(Key("k", 2, domains=((50.0, 100),)),), rate=500))
    keys, at = table.column("k").to_numpy(), _seconds(table)
    assert keys[at < 50].max() == 1
    assert keys[at >= 50].max() == 99


@pytest.mark.parametrize("type_", TYPES)
def test_all_types(type_: str) -> None:
    spec = StreamSpec(
        "a",
        keys=(Key("k", 3, type=type_, nulls=0.2 if type_ != "sequence" else 0),),
        payload=(Payload("p", type_, low=-5, high=5, nulls=0.5),),
        rate=50,
        null_times=0.1,
    )
    table = _one(spec)
    assert table.schema == spec.schema
    table.validate(full=True)
    assert 0.4 < table.column("p").null_count / len(table) < 0.6
    assert 0.05 < table.column("ts").null_count / len(table) < 0.15
    distinct = len(table.column("k").unique().drop_null())
    assert distinct == {"bool": 2, "sequence": len(table)}.get(type_, 3)


def test_hot_keys_of_all_streams_are_the_same() -> None:
    specs = [StreamSpec(n, keys=(Key("k", 100, 1.5, "string"),), rate=100) for n in "ab"]
    tops = {
        t.column("k").value_counts().to_pylist()[0]["values"]
        for t in generate(specs, 100, 3).values()
        for t in [t.sort_by([("k", "ascending")])]
    }
    assert tops == {"k0"}


def test_deterministic_and_independent() -> None:
    a = StreamSpec("a", keys=(Key("k"),), payload=(Payload("p"),), rate=100, disorder=1,
                   out_of_order=0.5)  # fmt: skip
    b = StreamSpec("b", keys=(Key("k"),), rate=100)
    alone, together = _one(a), generate([b, a], 100, 1)
    assert together["a"].equals(alone)
    assert not _one(a, seed=2).equals(alone)
    assert together["a"].column("k").slice(0, 50) != together["b"].column("k").slice(0, 50)
    wider = StreamSpec("a", (Key("k"),), (Payload("p"), Payload("q")), 100, "ts", 1, 0.5)
    assert _one(wider).select(["ts", "k", "p"]).equals(alone)


def test_two_streams_of_one_name_are_refused() -> None:
    with pytest.raises(SpecError, match="'a' is given to two streams"):
        generate([StreamSpec("a"), StreamSpec("a")], 1, 1)


@pytest.mark.parametrize("format_", ["parquet", "csv", "jsonl"])
def test_written_streams_can_be_read(tmp_path: Path, format_: Format) -> None:
    spec = StreamSpec(
        "a", (Key("k", type="string"), Key("d", type="decimal")), (Payload("x", "double"),)
    )
    paths = write_streams([spec], 5, 1, tmp_path / "new", format_)
    table = _one(spec, 5)
    if format_ == "parquet":
        assert pq.read_table(paths["a"]).equals(table)
    elif format_ == "csv":
        read = pcsv.read_csv(paths["a"])
        assert read.column("ts").cast(pa.timestamp("us")).equals(table.column("ts"))
        assert read.column("k").equals(table.column("k"))
    else:
        lines = [json.loads(line) for line in paths["a"].read_text().splitlines()]
        assert [line["x"] for line in lines] == table.column("x").to_pylist()
        assert lines[0]["ts"].startswith("2024-01-01T00:00:00.")
    with pytest.raises(OutputExists, match="exists"):
        write_streams([spec], 5, 1, tmp_path / "new", format_)


def test_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="format is 'xml'"):
        write_streams([StreamSpec("a")], 1, 1, tmp_path, "xml")  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.slow
def test_ten_million_rows_in_a_few_seconds() -> None:
    specs = [
        StreamSpec(n, (Key("k", 100_000, 1.1),), (Payload("v"),), 34_000, disorder=2,
                   out_of_order=0.2)
        for n in "abc"
    ]  # fmt: skip
    begin = time.process_time()
    assert sum(t.num_rows for t in generate(specs, 100, 1).values()) > 10_000_000
    assert time.process_time() - begin < 10

"""Every registered benchmark, in a tiny configuration: it runs, and reports what it should."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa
import pytest

from plait.errors import PlaitError
from plait_lab.bench.registry import BENCHMARKS, describe, names, run

TINY = {
    "rows": "600",
    "keys": "2000",
    "window_seconds": "1",
    "batch_seconds": "1",
    "batches": "3",
    "repeats": "2",
    "queries": "2",
    "most": "3",
    "most_work": "30000",
    "windows": "2",
    "counting": "2",
    "finalists": "1",
    "runtimes": "local",
    "before": "4",
    "during": "4",
    "after": "4",
    "scale": "0.05",
    "finals": "1",
    "minutes": "1",
    "tuples": "30000",
    "settings": "8",
    "planned": "6",
}


ON_SPARK = {
    "move-pause": {"stored": "3000", "keys": "500", "warm": "3", "batches": "14"},
    "processors": {"rows": "3000", "keys": "50", "warm": "2", "batches": "5", "idle": "1"},
    "peers-chain": {"keys": "200", "systems": "plait,native-hdfs"},
    "peers-output": {"keys": "100", "systems": "native-rocksdb", "fewer_batches": "3"},
    "sink-delta": {"rows": "3000", "keys": "50", "repeats": "1"},
    "spark-state-writes": {
        "rows": "8000",
        "window_seconds": "0.1",
        "batches": "10",
        "cores": "1",
    },
}
"""Each starts Spark once or twice."""
ELSEWHERE = {"kafka-latency", "peers-ingest", "peers-tiny", "spark-soak", "store-overhead"}
"""Tested in tests/workshop/bench/spark; the peers-... differ from those above in options only."""


LONG = ("move-pause", "peers-chain", "processors", "sink-delta", "spark-state-writes")
"""Minutes even if tiny, and much like the other benchmarks on Spark."""


def measurable() -> Iterator[Any]:
    """The names of what is run here; what uses Spark runs in turn."""
    for name in names():
        if name in ON_SPARK:
            long = [pytest.mark.campaign] if name in LONG else []
            yield pytest.param(name, marks=[pytest.mark.xdist_group("spark"), *long])
        elif name not in ELSEWHERE:
            yield name


@pytest.fixture
def arrow_threads() -> Iterator[None]:
    """Benchmarks run on one thread and say so to Arrow."""
    before = pa.cpu_count()
    yield
    pa.set_cpu_count(before)


def tiny_options(name: str) -> dict[str, str]:
    module, function = BENCHMARKS.functions[name].split(":")
    kind: Any = get_type_hints(getattr(import_module(module), function))["options"]
    return {f.name: TINY[f.name] for f in fields(kind) if f.name in TINY} | ON_SPARK.get(name, {})


def strictly(text: str) -> dict[str, Any]:
    """Read JSON as the standard has it: no NaN, no infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    data: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return data


def test_every_benchmark_is_described_in_one_line() -> None:
    assert names() == sorted(BENCHMARKS.functions)
    for name in names():
        assert describe(name).endswith("."), name


@pytest.mark.slow
@pytest.mark.usefixtures("arrow_threads")
@pytest.mark.parametrize("name", list(measurable()))
def test_a_tiny_run_reports_what_it_measured(name: str, tmp_path: Path) -> None:
    notes: list[str] = []
    options = tiny_options(name)
    report = run(name, options, notes.append)
    assert notes, "long work says what it is doing"
    path = tmp_path / "report.json"
    report.write_json(path)
    data = strictly(path.read_text())
    assert data["name"] == name
    for key, text in options.items():
        given = data["parameters"][key]
        assert given == type(given)(text), key
    assert data["systems"]
    for series in data["series"]:
        assert len(series["x"]) == len(series["y"]) > 0
        assert series["label"]
        assert series["unit"]
    assert data["claims"]
    assert len({claim["id"] for claim in data["claims"]}) == len(data["claims"])
    for claim in data["claims"]:
        assert isinstance(claim["value"], float)
        assert isinstance(claim["holds"], bool)
        assert claim["claim"]
        assert claim["measured"]
        assert claim["bound"]
    for claim in data["claims"]:
        assert claim["holds"] or not re.search("finds? the same", claim["claim"]), "wrong results"
    assert data["environment"]["versions"]
    assert report.plot(tmp_path / "plots").stat().st_size > 1000


def test_an_unknown_benchmark_is_named_with_the_nearest_one() -> None:
    with pytest.raises(PlaitError) as raised:
        run("kernel-outputs")
    assert str(raised.value).startswith(
        "there is no benchmark 'kernel-outputs'; did you mean 'kernel-output'? known: "
    )
    with pytest.raises(PlaitError):
        describe("nonsense")


def test_an_unknown_option_is_refused_before_anything_runs() -> None:
    with pytest.raises(PlaitError, match="kernel-output has no option 'row'"):
        run("kernel-output", {"row": "1"})

"""The control directory: decisions in their order, reports of the last batches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from plait.cluster.report import Report
from plait.plan.examples import clique
from plait.plan.jtree import mjoin
from plait.runtime.spark.control import Control, made, register

QUERY = clique(3)


def control(folder: Path) -> Control:
    return Control.of(str(folder), None, "run", "yarn")


def test_decisions_are_numbered_whoever_makes_them(tmp_path: Path) -> None:
    here = control(tmp_path)
    assert here.epoch(QUERY) is None
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(here.decide, mjoin(QUERY), "moving-state") for _ in range(24)]
        numbers = sorted(future.result().number for future in asked)
    assert numbers == list(range(1, 25))
    newest = control(tmp_path).epoch(QUERY)
    assert newest is not None and newest.number == 24 and newest.plan == mjoin(QUERY)


def test_numbers_go_on_from_what_processors_have_followed_elsewhere(tmp_path: Path) -> None:
    here = control(tmp_path)
    assert here.followed("q") == 0
    for batch, epoch in ((8, 9), (9, 5), (10, 6)):
        here.write_report("q", batch, Report(0, batch + 1, epoch=epoch))
    assert here.followed("q") == 6, "what was long ago does not count"
    assert here.decide(None, "auto", here.followed("q")).number == 7


def test_reports_of_the_last_batches_are_kept(tmp_path: Path) -> None:
    here = control(tmp_path)
    assert not here.knows("q") and here.reports("q", 0) == []
    for batch in range(200):
        for processor in (1, 0):
            here.write_report("q", batch, Report(processor, batch + 1, results=batch))
    assert [r.processor for r in here.reports("q", 199)] == [0, 1]
    assert [r.results for r in here.reports("q", 100)] == [100, 100]
    assert here.reports("q", 20) == [], "long ago"
    assert here.reports("q", 19) == here.reports("other", 199) == []


def test_a_join_is_found_by_the_query_that_reported(tmp_path: Path) -> None:
    here = control(tmp_path)
    register(QUERY, "this one", here)
    assert made("some query", "this one") is None
    here.write_report("some query", 0, Report(0, 1))
    join = made("some query", "this one")
    assert join is not None and join.control == here
    assert made("some query", None) is None


def test_a_temporary_one_goes(tmp_path: Path) -> None:
    here = Control.of(None, None, tmp_path.name + "-control-test", "local[2]")
    assert here.shared and here.temporary
    here.write_report("q", 0, Report(0, 1))
    here.remove()
    assert not here.knows("q")
    kept = control(tmp_path)
    kept.write_report("q", 0, Report(0, 1))
    kept.remove()
    assert kept.knows("q"), "a checkpoint is the user's"

"""What batches tell: lookups that see all rows, and tuples that were stored."""

from __future__ import annotations

from plait.engine.monitor import Watch
from plait.local.host import LocalRun
from plait.plan.jtree import parse_shape
from plait.plan.routed import Eddies
from plait.testing.examples import clique
from plait_lab.laws.strategies.lagging import lagging_history

HISTORY = lagging_history(clique(3), batches=8, rows=4, seed=2)
OLD, NEW = (parse_shape(HISTORY.query, shape) for shape in ("((a b) c)", "(a (b c))"))
AB, C = 0b011, 0b100


def test_a_watch_counts_what_is_stored_and_looked_up() -> None:
    run = LocalRun(HISTORY.query, OLD)
    watch = Watch(run.engine)
    for batch in HISTORY.tables()[:3]:
        run.push(batch)
    on_time = [run.counts.rows[name] - run.counts.late[name] for name in HISTORY.query.names]
    assert watch.stored() == on_time
    root = {(found.gathered, found.target): found for found in watch.looked()}
    counters = run.engine.counters[0].inputs
    assert root[AB, C].probes == counters[0].steps[0].probes > 0
    assert root[C, AB].matches == counters[1].steps[0].matches
    assert Watch(run.engine).looked() == [] and watch.sees(run.engine)


def test_on_a_parallel_track_the_old_box_is_watched() -> None:
    run = LocalRun(HISTORY.query, OLD)
    for batch in HISTORY.tables()[:3]:
        run.push(batch)
    watch = Watch(run.engine)
    run.migrate(NEW, "parallel-track")
    assert watch.sees(run.engine), "the old joins still see all rows"
    run.push(HISTORY.tables()[3])
    assert {(AB, C), (C, AB)} <= {(found.gathered, found.target) for found in watch.looked()}
    assert not any(found.target == 0b110 for found in watch.looked()), "the new box sees few rows"
    for batch in HISTORY.tables()[4:]:
        run.push(batch)
    assert not run.engine.migrating and not watch.sees(run.engine)


def test_a_router_is_not_watched() -> None:
    run = LocalRun(HISTORY.query, Eddies())
    watch = Watch(run.engine)
    run.push(HISTORY.tables()[0])
    assert watch.looked() == [] and watch.stored() == []

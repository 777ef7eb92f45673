"""The campaign on Spark, without Spark: rounds repeat, orders are obeyed once, losses are seen."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lab.torture.stories import story_with

from plait.errors import PlaitError
from plait.testing.oracle.answer import oracle, split_late
from plait.testing.oracle.fates import FILTERED
from plait_lab.laws.upgrades import Answer, Asked, full_answers, phases_of
from plait_lab.torture.spark import campaign as spark
from plait_lab.torture.spark.campaign import (
    Driver,
    campaign,
    changes_told,
    check,
    repeat,
    sink_files,
    without_neighbours,
)
from plait_lab.torture.spark.driver import Files
from plait_lab.torture.spark.killpoints import (
    APART,
    BY_NAME,
    CLUSTER,
    LOCAL,
    POINTS,
    SITE_POINTS,
    Order,
    Orders,
)
from plait_lab.torture.spark.rounds import Story, random_story, read_round, write_story
from plait_lab.torture.tally import Tally

Told = tuple[Tally, list[str]]


def test_an_order_is_obeyed_once_and_not_too_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    struck: list[int] = []
    monkeypatch.setattr("plait_lab.torture.spark.killpoints.strike", struck.append)
    orders = Orders(tmp_path)
    orders.give([Order("task-begun", "worker", 3), Order("task-begun", "driver", 3)])
    pids = {"worker": 7, "driver": -9}
    orders.obey("task-begun", 2, pids.__getitem__)
    orders.obey("packets-read", 5, pids.__getitem__)
    assert struck == [] and len(orders.waiting()) == 2
    for _ in range(2):
        orders.obey("task-begun", 4, pids.__getitem__)
    assert struck == [7, -9] and not orders.waiting()
    assert [(k.target, k.batch, k.pid) for k in orders.kills()] == [
        ("worker", 4, 7),
        ("driver", 4, -9),
    ]


def test_names_of_points_are_distinct_and_explained() -> None:
    assert len(BY_NAME) == len(POINTS) + len(SITE_POINTS)
    assert all(point.about.endswith(".") for point in BY_NAME.values())


@pytest.mark.parametrize("master", [LOCAL, CLUSTER])
def test_a_tour_visits_every_point(tmp_path: Path, master: str) -> None:
    every = [point.name for point in POINTS]
    apart = {g: [point.name for point in POINTS if point.group == g] for g in APART}
    story = random_story(tmp_path, master, "1", tour=every)
    assert {order.point for order in story.orders} == set(every) - {*chain(*apart.values())}
    assert story.changes and story.round.policy is not None and story.round.staged
    assert story.round.moves and not story.round.delta
    for group, points in apart.items():
        other = random_story(tmp_path, master, "1", tour=points)
        assert {order.point for order in other.orders} == set(points)
        assert other.round.delta == (group == "delta")
        assert bool(other.round.later) == (group == "rebalance")


@pytest.mark.slow
def test_a_round_is_read_as_it_was_written(tmp_path: Path) -> None:
    for number in range(12):
        story = random_story(tmp_path / str(number), LOCAL, f"7/{number}")
        write_story(story)
        assert read_round(story.round.folder) == story.round
        assert [change for _, change in story.round.changes()] == list(story.changes)
        read = [order for _, order in Orders(story.round.folder).waiting()]
        assert sorted(read, key=repr) == sorted(story.orders, key=repr)


def test_some_rounds_go_on_from_a_golden_checkpoint(tmp_path: Path) -> None:
    story = next(
        found
        for number in range(100)
        if (found := random_story(tmp_path, LOCAL, f"up/{number}")).round.upgrade
    )
    write_story(story)
    assert read_round(tmp_path) == story.round and story.seen == 2
    first = (tmp_path / "checkpoint" / "sources" / "0" / "0").read_text()
    assert f"file://{tmp_path}/in/left/0.parquet" in first
    assert (tmp_path / "in" / "left" / "0.parquet").exists()


def _sink(story: Story) -> tuple[Path, pa.Table]:
    """The right answer, as rows of the sink."""
    query = story.round.query
    on_time, late = split_late(query, story.batches)
    rows = [
        dict(zip(query.schema.names, r, strict=True)) for r in oracle(query, on_time).elements()
    ]
    results = pa.Table.from_pylist(rows, schema=query.schema)
    members = [(name, pa.struct([("id", pa.int64())])) for name in query.names]
    type_ = pa.struct([("stream", pa.string()), ("reason", pa.string()), *members])
    aside = [
        {"stream": name, "reason": "late", name: {"id": row["id"]}}
        for name, bad in late.items()
        for row in bad
    ]
    results = results.append_column("late", pa.nulls(len(results), type_))
    others = {
        name: pa.nulls(len(aside), results.schema.field(name).type) for name in query.schema.names
    }
    found = pa.concat_tables([results, pa.table({**others, "late": pa.array(aside, type_)})])
    out = story.round.folder / "out"
    (out / "_spark_metadata").mkdir(parents=True)
    return out, found


def _log(out: Path, name: str, *paths: Path) -> None:
    lines = [json.dumps({"path": f"file://{p}", "action": "add"}) for p in paths]
    (out / "_spark_metadata" / name).write_text("\n".join(["v1", *lines]))


def _plain(folder: Path) -> Story:
    """A round with results and late rows and without nulls."""
    for number in range(100):
        story = random_story(folder, LOCAL, f"plain/{number}")
        if story.round.delta or story.round.later:
            continue
        rows = [r for batch in story.batches for rows in batch.values() for r in rows]
        if any(None in row.values() for row in rows):
            continue
        on_time, late = split_late(story.round.query, story.batches)
        if all(late.values()) and oracle(story.round.query, on_time).total() > 20:
            return story
    raise AssertionError("there is such a round among a hundred")


@pytest.mark.slow
def test_only_what_the_sink_logged_counts(tmp_path: Path) -> None:
    story = _plain(tmp_path)
    out, rows = _sink(story)
    parts = []
    for number in range(3):
        parts.append(out / f"part {number}.parquet")
        share = -(-len(rows) // 3)
        pq.write_table(rows.slice(number * share, share), parts[-1])
    torn = out / "part-torn.parquet"
    torn.write_bytes(b"PAR1")
    _log(out, "0", parts[0])
    _log(out, "1.compact", parts[0], parts[1])
    _log(out, "2", parts[2])
    (out / "_spark_metadata" / ".3.tmp").write_text("v1")
    assert sink_files(out) == parts
    results, found = check(story)
    assert results > 20 and found == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda rows: rows.slice(1), "1 results lost"),
        (lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]), "1 repeated or wrong"),
        (lambda rows: rows.slice(0, len(rows) - 1), "1 lost"),
        (lambda rows: pa.concat_tables([rows, rows.slice(len(rows) - 1)]), "1 extra"),
    ],
)
def test_one_row_more_or_less_is_seen(
    tmp_path: Path, spoil: Callable[[pa.Table], pa.Table], told: str
) -> None:
    story = _plain(tmp_path)
    out, rows = _sink(story)
    pq.write_table(spoil(rows), out / "part.parquet")
    _log(out, "0", out / "part.parquet")
    _, found = check(story)
    assert len(found) == 1 and told in found[0]


@pytest.mark.slow
@pytest.mark.parametrize("told", ["", "phase 1: 1 results lost", "1 extra"])
def test_each_question_has_its_own_answer(tmp_path: Path, told: str) -> None:
    story = story_with(
        tmp_path,
        lambda s: (
            len(s.round.later) == 1
            and s.upgrades == 1
            and not s.round.delta
            and all(answer.results.total() > 5 for answer in _answers(s))
        ),
    )
    out = tmp_path / "out"
    (out / "_spark_metadata").mkdir(parents=True)
    for number, (phase, answer) in enumerate(zip(story.round.phases, _answers(story), strict=True)):
        names = phase.query.schema.names
        wanted = list(answer.results.elements())[int(number == 1 and "lost" in told) :]
        rows = [dict(zip(names, row, strict=True)) | {"phase": number} for row in wanted]
        schema = phase.query.schema.append(pa.field("phase", pa.int32()))
        members = [(name, pa.struct([("id", pa.int64())])) for name in phase.query.names]
        type_ = pa.struct([("stream", pa.string()), ("reason", pa.string()), *members])
        aside = [
            {"stream": name, "reason": reason, name: {"id": row["id"]}}
            for name, reasons in answer.aside.items()
            for reason, several in reasons.items()
            if reason != FILTERED
            for row in several
        ]
        if number and told == "1 extra":
            aside.append({"stream": "a", "reason": "late", "a": {"id": 10**6}})
        table = pa.Table.from_pylist(rows, schema=schema)
        others = pa.Table.from_pylist([{"phase": number}] * len(aside), schema=schema)
        table = pa.concat_tables([table, others])
        late = pa.array([*[None] * len(rows), *aside], type_)
        pq.write_table(table.append_column("late", late), out / f"{number}.parquet")
        _log(out, str(number), out / f"{number}.parquet")
    _, found = check(story)
    assert len(found) == bool(told) and all(told in text for text in found)


def _answers(story: Story) -> list[Answer]:
    asked = [Asked(p.since, p.query) for p in story.round.phases]
    return full_answers(phases_of(asked, story.batches))


def test_rows_of_others_in_a_delta_table_are_told_apart() -> None:
    mine, theirs = pa.table({"a_id": [1, 2, None]}), pa.table({"a_id": [-1, -2]})
    kept, found = without_neighbours([mine, theirs])
    assert kept == [mine, theirs.slice(0, 0)] and not found
    _, found = without_neighbours([mine, theirs.slice(1)])
    assert "lost or repeated" in found[0]


def test_files_tell_where_a_batch_is(tmp_path: Path) -> None:
    files = Files(tmp_path)
    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out"
    assert files.reached("checkpoint-begun") is None
    for folder in (checkpoint / "offsets", checkpoint / "commits", out / "_spark_metadata"):
        folder.mkdir(parents=True)
    assert files.reached("checkpoint-begun") == 0
    (checkpoint / "offsets" / "0").touch()
    (out / "part-of-a-dead-task").touch()
    assert files.reached("offsets-logged") == files.reached("any-time") == 0
    assert files.reached("part-unlogged") is None
    (checkpoint / "state" / "0" / "1").mkdir(parents=True)
    (checkpoint / "state" / "0" / "1" / "1.changelog").touch()
    assert files.reached("state-logged") == 0 and files.reached("offsets-logged") is None
    (out / "part-new").touch()
    assert files.reached("part-unlogged") == 0
    (out / "_spark_metadata" / "0").touch()
    assert files.reached("sink-logged") == 0 and files.reached("part-unlogged") is None
    (checkpoint / "commits" / "0").touch()
    assert files.reached("batch-committed") == 0 and files.reached("sink-logged") is None


def test_migrations_and_moves_are_counted_once(tmp_path: Path) -> None:
    reports = tmp_path / "checkpoint" / "plait" / "join" / "reports" / "q"
    reports.mkdir(parents=True)
    done = {"start": 2, "new": "((a b) c)", "refused": ""}
    for batch in (2, 3):  # two batches of a parallel track
        report = {
            "processor": 0,
            "migrations": [done, {**done, "start": 9, "refused": "no"}],
            "moves": [{"move": 4, "what": "sent"}, {"move": batch, "what": "received"}],
        }
        (reports / f"{batch}-0.json").write_text(json.dumps(report))
    assert changes_told(tmp_path) == (1, 3)


@pytest.mark.slow
def test_a_campaign_adds_up_and_keeps_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = {point.name: 1 for point in POINTS}
    ran: list[Path] = []

    def run_story(story: Story, driver: Driver) -> Told:
        folder = story.round.folder
        folder.mkdir(parents=True)
        ran.append(folder)
        told = [] if driver.master == LOCAL else ["1 results lost"]
        return Tally(1, 10, 5, kills=dict(everything)), told

    monkeypatch.setattr(spark, "run_story", run_story)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said: list[str] = []
    tally, failures = campaign(0.2, 42, said.append)
    assert tally.queries == len(ran) >= 2 and tally.rows == 10 * len(ran)
    assert tally.kills == {point.name: len(ran) for point in POINTS}
    assert {f for f in ran if f.exists()} == {f for f in ran if "lane1" in str(f)}
    assert {failure.text for failure in failures} == {"1 results lost"}
    assert failures[0].case == "42/1/0"
    assert any("FAILED round 42/1/0" in line for line in said)
    again, failures = repeat("42/1/7", said.append)
    assert again.queries == 1 and [failure.case for failure in failures] == ["42/1/7"]
    with pytest.raises(PlaitError, match="names no round on Spark"):
        repeat("7:100", said.append)


def test_failures_that_no_kill_explains_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = random_story(tmp_path, LOCAL, "3")

    def run(self: Driver, folder: Path) -> str:
        (folder / "errors").write_text(
            "batch 1: ...\n\nEOFError\n---\nbatch 2: AssertionError\n---\n"
        )
        told = ["Python worker failed to connect back"]
        for n in range(3):
            told.append(
                f"run 0000000{n}-0000-0000-0000-000000000000: no\n=== Streaming Query ===\n{n}"
            )
        (folder / "failed").write_text("".join(f"{text}\n---\n" for text in told))
        return "stuck"

    monkeypatch.setattr(Driver, "run", run)
    _, told = spark.run_story(story, Driver(LOCAL, tmp_path / "home"))
    assert len(told) == 3 and told[0].startswith("stuck")
    assert "batch 2: AssertionError" in told[1]
    assert "(failed, 3 times): run ID: no" in told[2]


def test_tasks_that_fail_again_and_again_end_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that only writes down failures is ended long before Spark gives a task up."""
    folder = tmp_path / "round"
    folder.mkdir()
    script = f"open({str(folder / 'errors')!r}, 'a').write('x' * 200_000); input(); input()"

    def start(self: Driver) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", script]
        found = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        self._process = found
        return found

    monkeypatch.setattr(Driver, "_start", start)
    driver = Driver(LOCAL, tmp_path)
    try:
        assert "tasks fail again and again" in driver.run(folder)
    finally:
        driver.close()


def test_what_breaks_a_lane_breaks_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(story: Story, driver: Driver) -> Told:
        raise OSError("no Java")

    monkeypatch.setattr(spark, "run_story", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(OSError, match="no Java"):
        campaign(60.0, 1, lambda _: None)


def test_a_point_that_is_never_reached_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "run_story", lambda *_: (Tally(1, kills={"task-begun": 1}), []))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tally, failures = campaign(0.01, 1, lambda _: None)
    assert len(failures) == 2 and "sink-logged" in failures[0].text
    assert tally.queries == 12, "it is tried a few times, however short the time"

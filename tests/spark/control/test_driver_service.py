"""The clerk beside a query: it keeps the history, and does what it is asked for, once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.dashboard.hostile import spoilers, within

from plait.errors import MoveError
from plait.groups.routing.routing import route
from plait.node.reports.history_log import HistoryReader
from plait.node.reports.question import Question
from plait.node.reports.report import Report
from plait.node.reports.requests import PlanRequest
from plait.spark.control.directory import Control
from plait.spark.control.driver_files import HISTORY, QUESTION
from plait.spark.control.driver_service import DriverService
from plait.spark.control.joins import RegisteredJoin
from plait.spark.control.plan_requests import PlanRequests
from plait.testing.examples import clique

QUERY, ID, NOW = clique(3), "some query", 1_000.0


class World:
    """A checkpoint in which batches end, and its clerk."""

    def __init__(self, where: Path) -> None:
        self.folder = where / "checkpoint" / "plait" / "join"
        self.control = Control(str(self.folder), True)
        routing = route(QUERY.graph, 2)
        self.join = RegisteredJoin(QUERY, None, self.control, routing, plan="(a b c)")
        self.clerk = DriverService(self.join, lambda: NOW)
        self.requests = PlanRequests(self.folder)

    def batch(self, number: int, epoch: int = 0) -> None:
        for processor in range(2):
            report = Report(processor, number + 1, rows={"a": 5}, results=2, epoch=epoch)
            self.control.reports(ID).write(number, report)
        for log in ("offsets", "commits"):
            path = self.folder.parents[1] / log / str(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("v1\n" + json.dumps({"batchTimestampMs": 5_000 + number}) + "\n")

    def epochs(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "epochs").glob("*.json"))

    def newest_plan(self) -> str | None:
        epoch, _ = self.control.epochs.newest(QUERY)
        return None if epoch is None or epoch.plan is None else str(epoch.plan)


def test_history_has_no_gap_over_restarts(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert not world.clerk.turn(), "nothing has happened"
    world.batch(0)
    assert world.clerk.turn() and not world.clerk.turn()
    asked = Question.from_json((world.folder / QUESTION).read_text())
    assert asked.query == QUERY and asked.processors == 2
    for number in range(1, 41):
        world.batch(number)
    world.clerk.release()
    after = DriverService(world.join, lambda: NOW)
    while after.turn():
        pass
    lines = HistoryReader(world.folder / HISTORY).read()
    assert [line.last for line in lines] == list(range(41))
    assert {line.results for line in lines} == {4} and lines[3].at == 5.003


def test_one_clerk_at_a_time(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(0)
    world.clerk.turn()
    world.batch(1)
    other = DriverService(world.join, lambda: NOW)
    with pytest.raises(MoveError, match="another process keeps the history"):
        other.turn()
    world.clerk.release()
    assert other.turn()


def test_a_plan_is_pinned_and_released(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(0)
    world.requests.ask(PlanRequest("pin", "((a b) c)", "auto", NOW))
    assert world.clerk.turn() and world.newest_plan() == "((a b) c)"
    ((_, told),) = world.requests.answers()
    assert told.epoch == 1 and not told.refused and not world.requests.waiting()
    world.requests.ask(PlanRequest("release", at=NOW))
    world.clerk.turn()
    assert world.newest_plan() is None and len(world.epochs()) == 2


def test_a_migration_is_released_once_all_have_followed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(0)
    world.requests.ask(PlanRequest("migrate", "(a (b c))", "auto", NOW))
    world.clerk.turn()
    world.batch(1)
    world.clerk.turn()
    assert world.newest_plan() == "(a (b c))", "nobody has followed it yet"
    world.batch(2, epoch=1)
    world.clerk.turn()
    assert world.newest_plan() is None and len(world.epochs()) == 2
    world.batch(3, epoch=1)
    world.clerk.turn()
    assert len(world.epochs()) == 2, "once"


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (PlanRequest("pin", "((a z) c)", at=NOW), "'z'"),
        (PlanRequest("pin", "teddies", at=NOW), "cannot go over"),
        (PlanRequest("pin", "((a b) c)", at=NOW - 1e4), "too long ago"),
    ],
)
def test_what_cannot_be_done_is_refused(tmp_path: Path, request_: PlanRequest, said: str) -> None:
    world = World(tmp_path)
    world.batch(0)
    world.requests.ask(request_)
    world.clerk.turn()
    ((_, told),) = world.requests.answers()
    assert said in told.refused and not told.epoch and not world.epochs()


def test_files_that_are_no_requests_are_removed_or_left_alone(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(0)
    name = world.requests.ask(PlanRequest("release", at=NOW))
    (world.folder / "requests" / f"{name}.json").write_text('{"action": "pin"')
    (world.folder / "requests" / "notes.txt").write_text("mine")
    world.clerk.turn()
    assert not world.epochs() and not world.requests.waiting() and not world.requests.answers()
    assert (world.folder / "requests" / "notes.txt").exists()


@pytest.mark.parametrize("kind", ["a link", "a link to nothing", "a FIFO", "a folder", "a socket"])
@pytest.mark.parametrize("name", [HISTORY, QUESTION, "clerk.lock"])
def test_nothing_outside_is_written_and_who_asks_is_answered(
    tmp_path: Path, kind: str, name: str
) -> None:
    world = World(tmp_path)
    world.batch(0)
    (tmp_path / "secret").write_text("untouched")
    spoilers(tmp_path / "secret")[kind](world.folder / name)
    world.requests.ask(PlanRequest("release", at=NOW))
    try:
        within(20, world.clerk.turn)
    except OSError as error:
        assert str(world.folder / name) in str(error)
    if name != "clerk.lock":
        assert len(world.requests.answers()) == 1 and not world.requests.waiting()
    if name == QUESTION:
        assert len(HistoryReader(world.folder / HISTORY).read()) == 1
        assert kind == "a folder" or (world.folder / QUESTION).is_file()
    assert (tmp_path / "secret").read_text() == "untouched"
    assert not (tmp_path / "nowhere").exists()

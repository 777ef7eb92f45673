"""The balancer of a running query: what it makes of reports, and what it leaves alone."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from tests.spark.balance.managed_story import ID, Story, any_key, control_in

from plait.errors import MoveError
from plait.groups.balance.policy import BalancePolicy
from plait.spark.balance.balancer import Balancer, BalanceTask
from plait.spark.balance.moves import Moves
from plait.spark.control.background import BackgroundThread, ScheduledTask
from plait.spark.control.directory import Control
from plait.spark.control.locks import lock_on

pytestmark = pytest.mark.slow


def test_oracle_a_skewed_query_is_balanced_while_it_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert not logging.getLogger("plait").isEnabledFor(logging.INFO), "quiet by default"
    story = Story(control_in(tmp_path), BalancePolicy(), any_key)
    moves = Moves(story.join.routing, story.control, ID)
    moves.begin([g for g in range(128) if story.cluster.table.places[g] == (1,)][:56], [0])
    with caplog.at_level(logging.INFO, "plait"):
        story.run(36)
    assert "go to processor 1" in caplog.text, "and told to those who ask"
    rows = story.rows_of_last_batch()
    assert max(rows.values()) < 0.65 * sum(rows.values())
    assert "go to processor 1" in story.said() and "it paid" in story.said()
    assert story.exact()


def test_oracle_a_key_too_hot_for_one_processor_is_spread(tmp_path: Path) -> None:
    def hot(chance: Random) -> int:
        return 7 if chance.random() < 0.8 else chance.randrange(40)

    story = Story(control_in(tmp_path), BalancePolicy(), hot, (30, 3, 3))
    story.run(25)
    table = story.control.tables.newest()
    assert table is not None and table.spread, story.said()
    assert story.exact()


def test_what_is_even_stays_where_it_is(tmp_path: Path) -> None:
    story = Story(control_in(tmp_path), BalancePolicy(margin=0.6), any_key)
    story.run(20)
    assert story.control.tables.newest() is None and story.exact()


def test_processors_leave_and_come_back(tmp_path: Path) -> None:
    story = Story(control_in(tmp_path), BalancePolicy(active=1, confirm=1), any_key)
    story.run(14)
    assert len(set(Moves(story.join.routing, story.control, ID).table.places)) == 1
    story.balancer = Balancer(story.join, ID, BalancePolicy(active=2, confirm=1))
    story.run(14)
    assert len(set(Moves(story.join.routing, story.control, ID).table.places)) == 2
    assert story.exact()


def test_a_successor_ends_the_move_that_its_predecessor_began(tmp_path: Path) -> None:
    story = Story(control_in(tmp_path), BalancePolicy(), any_key)
    Moves(story.join.routing, story.control, ID).begin(range(30), [1])
    story.run(4)
    story.balancer = Balancer(story.join, ID, BalancePolicy(margin=0.9))
    story.run(12)
    table = story.control.tables.newest()
    assert table is not None and not table.under_way and table.places[0] == (1,)
    assert story.exact()


def test_oracle_processors_that_rest_still_need_what_was_exported(tmp_path: Path) -> None:
    """Many batches without a partition follow the table that ends a move, and more tables do."""
    control = replace(control_in(tmp_path), kept=2)
    story = Story(control, BalancePolicy(margin=0.9), any_key)
    story.cluster.transfers = cast(Any, control.transfers)  # instead of memory
    moves = Moves(story.join.routing, story.control, ID)
    begun = moves.begin(range(30), [1])
    while moves.table.under_way:
        story.run(1)
    ending = moves.table
    while story.cluster.batch < ending.since:
        story.run(1)
    for _ in range(3):
        story.pause()
    moves.begin(range(30, 40), [1])
    for _ in range(8):
        story.pause()
    assert control.transfers.numbers(begun.number, 0), "nobody has taken them in"
    story.run(12)
    assert not moves.table.under_way and moves.table.places[35] == (1,)
    assert not control.transfers.numbers(begun.number, 0)
    assert story.exact()


def test_a_transfer_that_is_damaged_is_given_up(tmp_path: Path) -> None:
    story = Story(control_in(tmp_path), BalancePolicy(margin=0.9), any_key)
    moves = Moves(story.join.routing, story.control, ID)
    moves.begin(range(30), [1])
    while not story.cluster.transfers.written:
        story.run(1)
    written = story.cluster.transfers.written
    first = min(written)
    written[first] = written[first][:-7]
    story.run(8)
    table = moves.table
    assert not table.under_way and table.places[0] == (0,)
    assert story.exact()


def test_a_second_manager_is_refused(tmp_path: Path) -> None:
    control = Control(str(tmp_path), True)
    first, second = lock_on(control), lock_on(control)
    first.take()
    first.take()
    with pytest.raises(MoveError, match="another process moves the partition groups"):
        second.take()
    first.release()
    second.take()


def test_the_thread_balances_and_says_why_it_cannot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    story = Story(control_in(tmp_path), BalancePolicy(margin=0.9), any_key)
    Moves(story.join.routing, story.control, ID).begin(range(30), [1])
    lock = lock_on(story.control)
    lock.take()
    thread, task = BackgroundThread(), BalanceTask(story.join, BalancePolicy(margin=0.9))
    with caplog.at_level(logging.WARNING, "plait"):
        thread.start(story.control.folder, ScheduledTask(task, "groups stay"))
        _until(lambda: "another process moves" in caplog.text)
    lock.release()

    def ended() -> bool:
        story.batch()
        return not Moves(story.join.routing, story.control, ID).table.under_way

    _until(ended)
    thread.stop(story.control.folder)
    assert story.exact()


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)

"""Which processors there are after a checkpoint was divided anew, and how groups get to them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from plait.errors import CheckpointDamaged
from plait.groups.routing.table import initial
from plait.spark.balance.processor_set import (
    assign_processors,
    processors_to_start,
    request_partitions,
    requested_partitions,
)
from plait.spark.control.directory import Control
from plait.spark.join.murmur3 import murmur3, processor_keys

KEYS = tuple(sorted(processor_keys(2)))
BEGAN = initial([0] * 64 + [1] * 64)


@pytest.fixture
def control(tmp_path: Path) -> Control:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "7").touch()
    (tmp_path / "plait" / "join").mkdir(parents=True)
    return Control(str(tmp_path / "plait" / "join"), True)


@pytest.mark.parametrize("seed", range(20))
def test_every_partition_has_one_processor_and_no_number_changes(seed: int) -> None:
    chance, keys = Random(seed), tuple(processor_keys(1 + seed % 4))
    for _ in range(5):
        partitions = chance.randint(1, 20)
        held = {p: chance.randrange(3) for p in range(len(keys))}
        every, active = assign_processors(keys, partitions, held)
        assert every[: len(keys)] == keys and len(set(every)) == len(every)
        assert [murmur3(every[p]) % partitions for p in active] == list(range(partitions))
        for number, key in enumerate(keys):
            rival = active[murmur3(key) % partitions]
            assert held.get(rival, 0) >= held[number]
        keys = every


def test_without_a_request_all_is_as_it_began(control: Control) -> None:
    assert processors_to_start(control, BEGAN, KEYS) is None
    assert control.tables.newest() is None


def test_groups_begin_to_move_once(control: Control) -> None:
    request_partitions(control, 3)
    found = processors_to_start(control, BEGAN, KEYS)
    assert found is not None and len(found.active) == requested_partitions(control) == 3
    table = control.tables.newest()
    assert table is not None and table.number == 1
    assert table.since == 8, "the next batch goes by it"
    assert {move.receivers[0] for move in table.under_way} <= set(found.active)
    assert processors_to_start(control, BEGAN, KEYS) == found
    assert control.tables.newest() == table


def test_a_driver_that_died_before_it_had_said_what_there_is(control: Control) -> None:
    request_partitions(control, 3)
    found = processors_to_start(control, BEGAN, KEYS)
    Path(control.folder, "rebalanced.json").unlink()
    assert processors_to_start(control, BEGAN, KEYS) == found
    table = control.tables.newest()
    assert table is not None and table.number == 3, "one gives up, one begins again"
    before = control.tables.numbered(2)
    assert before.given_up == control.tables.numbered(1).under_way
    assert not before.under_way and before.since < table.since


def test_back_to_fewer(control: Control) -> None:
    request_partitions(control, 4)
    more = processors_to_start(control, BEGAN, KEYS)
    request_partitions(control, 1)
    fewer = processors_to_start(control, BEGAN, KEYS)
    assert more is not None and fewer is not None
    assert fewer.keys == more.keys and len(fewer.active) == 1


@pytest.mark.parametrize(
    "text", ["", "{}", '{"keys": [1, 1], "active": [0]}', '{"keys": [1], "active": [3]}']
)
def test_what_cannot_be_read_is_refused(control: Control, text: str) -> None:
    request_partitions(control, 2)
    Path(control.folder, "rebalanced.json").write_text(text)
    with pytest.raises(CheckpointDamaged, match=r"rebalanced\.json cannot be read"):
        processors_to_start(control, BEGAN, KEYS)
    Path(control.folder, "partitions.json").write_text(text)
    with pytest.raises(CheckpointDamaged, match=r"partitions\.json cannot be read"):
        requested_partitions(control)

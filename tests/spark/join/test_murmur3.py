"""Spark's hash of integers: the keys of processors follow from it, and checkpoints keep them."""

from __future__ import annotations

import pytest

from plait.spark.join.murmur3 import murmur3, processor_keys

OF_SPARK = {0: 933211791, 1: -559580957, 2: 1765031574, 42: 29417773, 2**31 - 1: 133916647}
"""What `SELECT hash(CAST(k AS INT))` says."""


def test_the_hash_is_that_of_spark() -> None:
    assert {k: murmur3(k) for k in OF_SPARK} == OF_SPARK


def test_keys_as_they_are_in_checkpoints() -> None:
    assert processor_keys(1) == [0]
    assert processor_keys(2) == [2, 0]
    assert processor_keys(4) == [12, 6, 2, 0]


@pytest.mark.parametrize("processors", [1, 2, 3, 7, 16, 200])
def test_each_processor_has_a_partition_to_itself(processors: int) -> None:
    keys = processor_keys(processors)
    assert [murmur3(key) % processors for key in keys] == list(range(processors))
    for partition, key in enumerate(keys):
        smaller = [k for k in range(key) if murmur3(k) % processors == partition]
        assert not smaller, "it is the smallest"
    assert 0 in keys, "where a checkpoint of another number of processors is noticed"

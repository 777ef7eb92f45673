"""A worker exempts from collections what it has imported, and nothing that comes later."""

from __future__ import annotations

import gc
import weakref

import pytest

from plait.spark.join.worker import settle


class _Knot:
    """Refers to itself, so that only a collection frees it."""

    def __init__(self) -> None:
        self.me = self


@pytest.mark.slow
def test_a_worker_settles_once() -> None:
    settle.cache_clear()
    try:
        settle()
        frozen = gc.get_freeze_count()
        assert frozen > 10_000
        later = weakref.ref(_Knot())
        settle()
        assert gc.get_freeze_count() <= frozen
        gc.collect()
        assert later() is None
    finally:
        gc.unfreeze()

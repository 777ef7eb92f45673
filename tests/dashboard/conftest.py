"""A checkpoint of a query that has run for a while, made by a generator."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from plait.dashboard.reading.snapshot import JoinSnapshot
from plait.dashboard.reading.watcher import watch_checkpoint
from plait_lab.workloads.checkpoints import LongRun

RUN = LongRun(60, 3, turns=3, kept=40)


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not to be changed."""
    where = tmp_path_factory.mktemp("dashboard") / "checkpoint"
    RUN.write(where)
    return where


@pytest.fixture
def checkpoint(generated: Path, tmp_path: Path) -> Path:
    """A copy that may be changed."""
    where = tmp_path / "checkpoint"
    shutil.copytree(generated, where)
    return where


@pytest.fixture(scope="session")
def snapshot(generated: Path) -> JoinSnapshot:
    """What is read of it."""
    (watcher,) = watch_checkpoint(generated)
    return watcher.refresh()

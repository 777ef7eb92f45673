"""The console and the metrics of a query of this driver."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from plait.api.running import Running
from plait.dashboard.reading.watcher import watch_checkpoint
from plait.dashboard.serving import MetricsServer
from plait.errors import MissingRequirement, SourceError
from plait.groups.routing.routing import route
from plait.spark.control.directory import Control
from plait.spark.control.joins import RegisteredJoin, register
from plait.testing.examples import clique

QUERY = SimpleNamespace(id="of test_serving", name=None)


def test_a_query_that_has_not_reported_is_refused() -> None:
    running = Running(cast(Any, SimpleNamespace(id="nobody knows it", name=None)))
    for serve in (running.console, running.metrics):
        with pytest.raises(SourceError, match="has reported a batch yet"):
            serve()


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reports" / QUERY.id).mkdir(parents=True)
    control = Control(str(tmp_path), True)
    register(RegisteredJoin(clique(2), None, control, route(clique(2).graph, 1)))
    monkeypatch.delitem(sys.modules, "plait.dashboard.server", raising=False)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(MissingRequirement, match=r"starlette.*plait\[console\]"):
        Running(cast(Any, QUERY)).console()
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingRequirement, match=r"prometheus_client.*plait\[metrics\]"):
        MetricsServer(watch_checkpoint(tmp_path), 0)

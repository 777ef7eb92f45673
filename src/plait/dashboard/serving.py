"""Serve the console and the metrics of a query of this driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from plait.dashboard.access import is_here
from plait.dashboard.reading.mirror import watch_remote
from plait.dashboard.reading.snapshot import Watcher
from plait.dashboard.reading.watcher import DirectoryWatcher
from plait.errors import MissingRequirement, SourceError
from plait.spark.control.directory import Control
from plait.spark.control.joins import joins_of

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from plait.dashboard.server import Console


def serve_console(query: Any, *, port: int = 0, control: bool = False) -> Console:
    """Start the console of a running query in the background (`Running.console`)."""
    watchers = watchers_of(query, control=control)
    with _installed("the console", "console"):
        from plait.dashboard.server import Console
    return Console(watchers, port=port, control=control).start()


class _Quiet(WSGIRequestHandler):
    """Logs nothing, and does not wait for who sends half a request."""

    timeout = 10.0

    def handle(self) -> None:
        """Answer a request, if it comes as a whole."""
        with suppress(OSError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


class MetricsServer:
    """An endpoint for Prometheus that runs; `close` ends it."""

    def __init__(self, watchers: list[Watcher], port: int) -> None:
        with _installed("the endpoint for Prometheus", "metrics"):
            from prometheus_client import CollectorRegistry, make_wsgi_app
            from prometheus_client.exposition import ThreadingWSGIServer

            from plait.dashboard.metrics import LiveMetrics

        registry = CollectorRegistry()
        registry.register(LiveMetrics(watchers))
        app = _only_here(make_wsgi_app(registry))
        self._server = make_server("127.0.0.1", port, app, ThreadingWSGIServer, _Quiet)
        self.port: int = self._server.server_port
        self._thread = Thread(target=self._server.serve_forever, name="plait-metrics", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address that Prometheus scrapes."""
        return f"http://127.0.0.1:{self.port}/metrics"

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)

    def __repr__(self) -> str:
        return f"<metrics {self.url}>"


def serve_metrics(query: Any, *, port: int = 9108) -> MetricsServer:
    """Serve the metrics of a running query for Prometheus (`Running.metrics`)."""
    return MetricsServer(watchers_of(query), port)


def _only_here(app: WSGIApplication) -> WSGIApplication:
    """The same, for requests that name this machine: pages of other sites could send others."""

    def guarded(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if is_here(environ.get("HTTP_HOST", "localhost")):
            return app(environ, start)
        start("403 Forbidden", [("Content-Type", "text/plain")])
        return [b"Metrics are told to this machine only: ask 127.0.0.1 or localhost.\n"]

    return guarded


@contextmanager
def _installed(name: str, extra: str) -> Iterator[None]:
    """Say what to install if a package is missing that an extra of Plait brings."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingRequirement(
            f"{name} needs {error.name}, which is not installed",
            remedy=f"pip install 'plait[{extra}]' brings it",
        ) from None


def watchers_of(query: Any, *, control: bool = False) -> list[Watcher]:
    """What reads the joins of a query of this driver; with `control`, also to ask for plans."""
    found: dict[str, Control] = {}
    for join in joins_of(str(query.id)):
        found.setdefault(join.control.folder, join.control)
    if not found:
        raise SourceError(
            f"no join of the query {query.name or query.id} has reported a batch yet, at least "
            "not where this driver can see it",
            remedy="ask again after its first batch; on a cluster, tell to_df(checkpoint=...) a "
            "folder that driver and executors share",
        )
    if away := next((c.checkpoint for c in found.values() if c.remote), None):
        return watch_remote(away, control=control)
    return [DirectoryWatcher(place) for place in found.values()]

"""The control directory: what the driver decides while a query runs, and processors look up.

    epochs/000001.json, epochs/000002.json, ...     immutable; see `plait.cluster.epochs`

Every processor looks for the newest epoch at the beginning of a batch. So the folder has to be one
that all executors reach: under the checkpoint if `to_df` was told a checkpoint in the file system,
else a temporary folder of this host, which serves local masters.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

from plait.cluster.epochs import Epoch
from plait.engine.migrate.record import Strategy
from plait.engine.migrate.strategy import check_request
from plait.errors import MigrationError
from plait.plan.jtree import Join, Leaf, Node, parse_shape
from plait.plan.routed import Plan
from plait.query.query import Query

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_FOLDER = "plait"
_EPOCHS = "epochs"


@dataclass(frozen=True, slots=True)
class Control:
    """A control directory."""

    folder: str

    @classmethod
    def beside(cls, checkpoint: str | None, run: str) -> Control:
        """The one of a checkpoint, or a temporary one.

        >>> Control.beside("file:///data/check%20point", "r").folder
        '/data/check point/plait'
        """
        local = None if checkpoint is None else local_path(checkpoint)
        if local is None:
            return cls(str(Path(tempfile.gettempdir(), f"plait-{os.getuid()}-control", run)))
        return cls(str(Path(local, _FOLDER)))

    @property
    def _epochs(self) -> Path:
        return Path(self.folder, _EPOCHS)

    def newest(self) -> int:
        """The number of the newest epoch, 0 if there is none."""
        try:
            names = os.listdir(self._epochs)
        except FileNotFoundError:
            return 0
        return max((int(n.removesuffix(".json")) for n in names if n.endswith(".json")), default=0)

    def epoch(self, query: Query) -> Epoch | None:
        """The newest epoch."""
        number = self.newest()
        if not number:
            return None
        return Epoch.from_json((self._epochs / _name(number)).read_text(), query)

    def decide(self, plan: Node, strategy: Strategy | Literal["auto"]) -> Epoch:
        """Add an epoch; whoever comes second with the same number takes the next one."""
        self._epochs.mkdir(parents=True, exist_ok=True)
        while True:
            epoch = Epoch(self.newest() + 1, plan, strategy)
            new = self._epochs / f"new-{os.getpid()}-{os.urandom(4).hex()}"
            new.write_text(epoch.to_json())
            try:
                os.link(new, self._epochs / _name(epoch.number))
            except FileExistsError:
                continue
            finally:
                new.unlink()
            return epoch


_RUNS: dict[str, tuple[Query, Control]] = {}
"""The queries that this driver has made, by the name of their run."""


def register(run: str, query: Query, control: Control) -> None:
    """Remember where decisions about a run go."""
    _RUNS[run] = (query, control)


def migrate(
    query: StreamingQuery,
    plan: Node | str,
    strategy: Strategy | Literal["auto"] = "moving-state",
    *,
    name: str | None = None,
) -> int:
    """Let a running query go on with another plan, from the next batch on; the epoch's number.

    Every processor does so at the beginning of a batch; one that is still in the middle of a
    migration, when it has ended it. `plait.progress(query)` shows the epoch and the plan of each,
    and what its migration took. No result is lost or repeated. If the query has several joins,
    `name` is the one that was given to `to_df`. What is refused changes nothing.
    """
    from plait.runtime.spark.progress import reports_of

    if not query.isActive:
        raise MigrationError(
            f"the query {query.name or query.id} has stopped, so it cannot go on with {plan}",
            remedy="start it again with this plan: to_df(plan=...)",
        )
    runs = [r.run for event in query.recentProgress for r in reports_of(event, name)]
    if not runs:
        raise MigrationError(
            f"the query {query.name or query.id} has not finished a batch of a Plait join yet",
            remedy="ask again after its first batch",
        )
    known = _RUNS.get(runs[-1])
    if known is None:
        raise MigrationError(
            f"the query {query.name or query.id} was made by another driver",
            remedy="migrate where to_df was called",
        )
    asked, control = known
    wanted: Plan = parse_shape(asked, plan) if isinstance(plan, str) else plan
    if not isinstance(wanted, Join | Leaf):
        raise MigrationError(
            f"on Spark a query cannot go over to {wanted} while it runs",
            remedy="give a tree of joins, or start the query with this router",
        )
    check_request(asked, wanted, wanted, strategy, "any")
    return control.decide(wanted, strategy).number


def local_path(location: str) -> str | None:
    """The path of a location in the file system, None if it is elsewhere.

    >>> local_path("/data/a"), local_path("file:/data/a%20b"), local_path("s3://bucket/a")
    ('/data/a', '/data/a b', None)
    """
    parts = urlsplit(location)
    if parts.scheme == "":
        return location
    return unquote(parts.path) if parts.scheme == "file" else None


def _name(number: int) -> str:
    return f"{number:06}.json"

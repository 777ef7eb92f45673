"""A handle on a running query: `running = plait.attach(query)`.

Spark owns the query; this handle adds what Plait knows of it. Its methods read reports and write
decisions through the control directory, so they also work on Spark Connect where that directory is
shared. One handle stands for one join; a query with several joins has a handle for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from plait.dashboard.serving import MetricsServer, serve_console, serve_metrics
from plait.errors import PlaitError, SourceError
from plait.groups.moves.move import Protocol
from plait.node.reports.progress import Progress
from plait.plan.explain import explain
from plait.plan.migration import Strategy
from plait.plan.text import Given, read_plan
from plait.spark.balance.moves import move
from plait.spark.checkpoint.why import why
from plait.spark.control.joins import find_join, migrate, release
from plait.spark.control.progress import progress

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from plait.dashboard.server import Console


def attach(query: StreamingQuery, name: str | None = None) -> Running:
    """Return a handle on a query that Spark runs or has run.

        query = q.to_df().writeStream.format("parquet").start(...)
        running = plait.attach(query)
        print(running.progress())

    If the query has several joins, `name` is the one that was given to `to_df`.
    """
    if not hasattr(query, "recentProgress"):
        raise SourceError(
            f"a {type(query).__name__} is no running query",
            remedy="give what writeStream's start() or write_delta() returned",
        )
    return Running(query, name)


@dataclass(frozen=True, slots=True)
class Running:
    """A join of Plait in a streaming query of Spark. Get one with `plait.attach`."""

    query: StreamingQuery
    name: str | None = None
    """The name that `to_df` gave to the join."""

    def __repr__(self) -> str:
        join = "" if self.name is None else f", join {self.name!r}"
        return f"Running(query {self.query.name or self.query.id}{join})"

    def progress(self) -> Progress:
        """Return totals and recent batches of the query, whether it runs or has ended.

        After a restart without new rows they are as the last batch before left them. A query
        without a join of this name is refused as soon as that is known.
        """
        return progress(self.query, self.name)

    def explain(self) -> str:
        """Describe the join and the plans that its processors run now.

        Each processor chooses its own plan, so there may be several. Before the first batch has
        been reported, there is none to show.
        """
        on: dict[str, list[int]] = {}
        for processor, plan in sorted(self.progress().plans.items()):
            on.setdefault(plan, []).append(processor)
        if not on:
            return "No processor has reported a plan yet; ask again after the first batch."
        join = find_join(str(self.query.id), self.name)
        if join is None:  # another host has the control directory
            return "\n".join(f"plan {plan}\n  {_where(places)}" for plan, places in on.items())
        header, plans = "", []
        for plan, places in on.items():
            header, _, tree = explain(join.query, read_plan(join.query, plan)).partition("\n\n")
            plans.append(f"{tree}\n  {_where(places)}")
        return "\n\n".join([header, *plans])

    def migrate(self, plan: Given, strategy: Strategy | Literal["auto"] = "moving-state") -> int:
        """Change to another plan at the next batch; return the number of the decision.

        Every processor changes at the beginning of a batch; one that is in the middle of a
        migration ends it first. `progress()` shows the plan of each processor, and what its
        migration cost. No result is lost or repeated. A refused plan changes nothing.

        From then on the plan stays, whatever happens to the streams, until `release` is called.
        """
        return migrate(self.query, plan, strategy, name=self.name)

    def release(self) -> int:
        """Let processors choose their plans again; return the number of the decision.

        They do so from the start, unless `to_df` was given a plan or `migrate` has set one.
        """
        return release(self.query, name=self.name)

    def move(
        self,
        groups: Iterable[int],
        to: int | Iterable[int],
        protocol: Protocol = "MSLB",
        *,
        spread: str | None = None,
    ) -> int:
        """Move partition groups to another processor; return the number of the move.

        By MSLB their rows are moved. By PTLB new rows go to both processors until the old ones
        have expired. With several processors in `to`, the rows of the stream `spread` are divided
        among them, and those of the other streams go to all. `progress()` shows the moves. No
        result is lost or repeated. A refused move changes nothing.

        The move ends by itself. Where groups are balanced, these may move on later;
        `balance(False)` leaves them where they are.
        """
        return move(self.query, groups, to, protocol, spread=spread, name=self.name)

    def console(self, *, port: int = 0, control: bool = False) -> Console:
        """Start the console of the query in the background; its `url` opens it.

        It listens on this machine only, and the address has a token without which it answers
        nothing. With `control`, plans can be asked for on its pages. `close()` ends it; the query
        does not notice either way.
        """
        return serve_console(self.query, port=port, control=control)

    def metrics(self, *, port: int = 9108) -> MetricsServer:
        """Serve the metrics of the query for Prometheus, on this machine only.

        They have numbers, and the names of streams and plans. `close()` ends it.
        """
        return serve_metrics(self.query, port=port)

    def why(self, checkpoint: str | None = None) -> PlaitError | None:
        """Return why the query failed, if Plait knows it; None if it did not fail.

        If Spark could not read the checkpoint, its files are searched for damage; where Spark does
        not say where the checkpoint is, give its location. `plait.spark.why` does the same for an
        exception of Spark.
        """
        error = self.query.exception()
        return None if error is None else why(error, checkpoint)


def _where(processors: list[int]) -> str:
    """Name the processors that run a plan."""
    noun = "processor" if len(processors) == 1 else "processors"
    return f"runs on {noun} {', '.join(map(str, processors))}"

"""What can be said about a question before it runs: its settings, and the plan they lead to.

The question itself is built in `plait.query`; `plait.api.runnable` runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast

from plait.api.sources import is_spark_frame
from plait.errors import PlaitError, PolicyError
from plait.plan.explain import explain
from plait.plan.jtree import mjoin
from plait.plan.routed import Plan, Routed, routed
from plait.plan.text import Given, read_plan, read_router
from plait.query.query import Query

if TYPE_CHECKING:
    from plait.adapt.policy import PlanPolicy
    from plait.groups.balance.policy import BalancePolicy
    from plait.optimize.budget import Budget
    from plait.optimize.planning import Planned
    from plait.optimize.statistics import Statistics


class BaseQuestion:
    """A question with its sources, and the settings of its runs."""

    __slots__ = ()

    query: Query
    sources: Mapping[str, Any]
    limits: Budget | None
    known: Statistics | None
    router: Routed | None
    enforced: bool
    adaptive: PlanPolicy | bool | None
    balanced: BalancePolicy | bool

    def adapt(self, policy: PlanPolicy | bool = True) -> Self:
        """Say whether the plan may change while it runs, and by which policy.

        By default it may, by the usual policy, unless a plan or a router is given for the run:
        then it is kept. `adapt(True)` lets the run begin with that plan and change it.
        `adapt(False)` keeps every plan; `adapt(plait.PlanPolicy(margin=0.5))` asks for more gain.
        """
        from plait.adapt.policy import PlanPolicy

        if not isinstance(policy, PlanPolicy | bool):
            raise PolicyError(
                f"a {type(policy).__name__} is no policy",
                remedy="give True, False or a plait.PlanPolicy",
            )
        return self._with(adaptive=policy)

    def balance(self, policy: BalancePolicy | bool = True) -> Self:
        """Say whether partition groups may move between processors, and by which policy.

        By default they may: a processor on Spark that has more to do than the others gives some of
        its groups away, while the query runs. `balance(False)` leaves them where they are;
        `balance(plait.BalancePolicy(margin=0.5))` moves them only if it helps a lot.
        """
        from plait.groups.balance.policy import BalancePolicy

        if not isinstance(policy, BalancePolicy | bool):
            raise PolicyError(
                f"a {type(policy).__name__} is no policy for balancing",
                remedy="give True, False or a plait.BalancePolicy",
            )
        return self._with(balanced=policy)

    def _balancing(self) -> BalancePolicy | None:
        """Return the policy by which groups move; None if they stay."""
        from plait.groups.balance.policy import BalancePolicy

        if isinstance(self.balanced, BalancePolicy):
            return self.balanced
        return BalancePolicy() if self.balanced else None

    def _policy(self, plan: object) -> PlanPolicy | None:
        """Return the policy of a run for which this plan was given; None if it keeps the plan."""
        from plait.adapt.policy import PlanPolicy

        if isinstance(self.adaptive, PlanPolicy):
            return self.adaptive
        if self.adaptive is None:
            return PlanPolicy() if plan is None and self.router is None else None
        return PlanPolicy() if self.adaptive else None

    def engine(self, name: str, **options: Any) -> Self:
        """Say what runs it: `engine("teddies", policy="lottery")`, `engine("eddies")` or "tree".

        The options are the fields of `plait.plan.routed.Teddies` and `Eddies`; the policy may also
        stand in the name, as on the command line: `engine("teddies (lottery)")`.
        """
        if name == "tree" and not options:
            return self._with(router=None)
        return self._with(router=routed(name, **options) if options else read_router(name))

    def budget(
        self,
        *,
        cpu: float | None = None,
        memory: str | float | None = None,
        enforce: bool = True,
    ) -> Self:
        """Say how much there is: `budget(cpu=0.8, memory="2 GB")`; the plan is chosen to fit.

        While it runs, the plan is replaced when it no longer fits, unless `adapt(False)`. `run()`
        also holds it to the memory: if the states outgrow it nevertheless, the run ends in
        MemoryExceeded. With `enforce=False`, and on Spark, the budget is for choosing plans only.
        CPU is never enforced: a plan that needs more is slower, not wrong.
        """
        from plait.optimize.budget import Budget

        return self._with(limits=Budget.of(cpu, memory), enforced=enforce)

    def statistics(self, known: Statistics | Mapping[str, Any]) -> Self:
        """Say what is known of the streams: `statistics({"rates": {"trades": 1000}})`."""
        from plait.optimize.statistics import Statistics, read_statistics, resolve

        found = known if isinstance(known, Statistics) else read_statistics(known)
        resolve(self.query, found)
        return self._with(known=found)

    def _with(self, **changes: Any) -> Self:
        return cast(Self, replace(cast(Any, self), **changes))

    @property
    def planned(self) -> Planned:
        """The plan chosen by the statistics, within the budget, with its costs and the reasons."""
        from plait.optimize.costs import load
        from plait.optimize.planning import plan_query

        return plan_query(self.query, self.known, self.limits, load())

    def plan(self, plan: Given = None) -> Plan:
        """Return the plan that answers the question: the one given, or else the one that is chosen.

        A plan is given as the shape of a tree, "((a b) c)", as "mjoin", as a router, "teddies" or
        "eddies (random)", as the JSON that `plait explain --json` writes, or as a value that this
        method returned. Without one it is the router that `engine` named, or the best plan within
        the budget or by the statistics, or else one mjoin.

        >>> import pyarrow as pa
        >>> from plait.api.join import join
        >>> row = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
        >>> asked = join(a=row, b=row, c=row).on("a.k = b.k", "b.k = c.k").within("5 seconds")
        >>> str(asked.plan()), str(asked.plan("((a b) c)")), str(asked.plan("teddies"))
        ('(a b c)', '((a b) c)', 'teddies (ordered)')
        """
        return read_plan(self.query, plan, self._choice)

    def _choice(self, query: Query) -> Plan:
        if self.router is not None:
            return self.router
        return self.planned.require() if self._informed else mjoin(query)

    @property
    def _informed(self) -> bool:
        """Whether anything is known by which a plan can be chosen."""
        return self.limits is not None or self.known is not None

    def explain(self, plan: Given = None, *, processors: int | None = None) -> str:
        """Describe the question and the plan that answers it, for people.

        With a budget or statistics, also what the plan is estimated to need, and why this one.
        With DataFrames of Spark, or a number of processors, also how rows are divided among them.
        """
        text = self._explained(plan)
        count = processors
        if count is None and (frame := next(filter(is_spark_frame, self.sources.values()), None)):
            from plait.spark.environment.partitions import processor_count

            count = processor_count(frame.sparkSession)
        if count is None:
            return text
        from plait.groups.routing.explain import explain_routing
        from plait.groups.routing.routing import route

        return f"{text}\n\n{explain_routing(self.query, route(self.query.graph, count))}"

    def _repr_html_(self) -> str:
        """Show the plan as a picture, and the explanation, in notebooks.

        >>> import pyarrow as pa
        >>> from plait.api.join import join
        >>> row = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
        >>> asked = join(a=row, b=row).on("a.k = b.k").within("5 seconds")
        >>> asked._repr_html_()[:4], join(a=row, b=row)._repr_html_()[:5]
        ('<svg', '<pre>')
        """
        from html import escape

        from plait.plan.picture import plan_svg

        try:
            return f"{plan_svg(self.plan())}<pre>{escape(self.explain())}</pre>"
        except PlaitError as error:  # a question in the making says what it still lacks
            return f"<pre>{escape(str(error))}</pre>"

    def _explained(self, plan: Given) -> str:
        if plan is None and self.router is None and self._informed:
            return self.planned.explain()
        return explain(self.query, self.plan(plan))

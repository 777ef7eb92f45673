"""Another plan over sites while they run on Spark, because somebody wants it.

Sites look for better plans by themselves if their policy says so. Links, however, are what the user
says: mail in a folder does not show how fast a link is. So another plan can be wanted from outside,
for other links, or one that is given. The plan is the one of
algorithm 1 (`plait.sites.planner.greedy`) for these links and for what the sites have measured.

It is ordered (`site_orders`), and the sites change to it in their turns like to any other one, or
give it up; their reports say what has come of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from plait.errors import MigrationError, SourceError
from plait.query.names import quoted
from plait.sites.planner.cost import SiteSetting, StreamStatistics, jep_cost
from plait.sites.planner.greedy import greedy
from plait.sites.plans.plan import Jep
from plait.sites.protocol.messages import WantPlan
from plait.sites.site.progress import SitesProgress
from plait.sites.spark.mail import Mailbox
from plait.sites.spark.orders import order_path, read_order, want, withdraw

_LOOK_EVERY = 0.25
"""Seconds between two looks at the reports."""
_READY = ("local-ready", "global-ready", "migrated")


@dataclass(frozen=True, slots=True)
class ReplanResult:
    """What came of looking for another plan."""

    old: Jep
    new: Jep
    change: int | None = None
    """The number of the new plan; None if the old one is still the best."""
    reason: str = ""

    def __str__(self) -> str:
        return self.reason


def measured(
    progress: SitesProgress, known: Mapping[str, StreamStatistics]
) -> dict[str, StreamStatistics]:
    """What is known of the streams, as the sites have measured it last.

    >>> from plait.sites.site.progress import sum_reports
    >>> found = {"rate": 4.0, "factor": 0.1, "tuple_bytes": 20.0, "window": 5.0, "notice": ""}
    >>> told = {"site": "oslo", "step": 1, "sent_bytes": {}, "measured": {"a": found}}
    >>> measured(sum_reports([told]), {"a": StreamStatistics(1.0, 0.1, 99, 5)})["a"]
    StreamStatistics(rate=4.0, factor=0.1, tuple_bytes=20.0, window=5.0)
    """
    found = dict(known)
    for site in progress.sites.values():
        for stream, told in site.measured.items():
            numbers = {f.name: float(told[f.name]) for f in fields(StreamStatistics)}
            found[stream] = StreamStatistics(**numbers)
    return found


def replanned(
    box: Mailbox,
    setting: SiteSetting,
    first: Jep,
    look: Callable[[], SitesProgress],
    timeout: float,
    given: Jep | None = None,
) -> ReplanResult:
    """Look for a better plan for a setting, or take the one that is given, and change to it."""
    progress = look()
    number, old = progress.plan or (0, first)
    new = greedy(setting) if given is None else given
    before, after = jep_cost(setting, old), jep_cost(setting, new)
    if new == old:
        return ReplanResult(old, old, reason=f"the plan {number} is the best that is known")
    statistics, links = tuple(setting.statistics.items()), setting.sites.links
    wish = want(box.orders, lambda n: WantPlan(n, new, statistics, links))
    change = _await(box, setting.sites.names, wish, look, timeout)
    costs = f"{1000 * after:.3g} ms per second instead of {1000 * before:.3g}"
    return ReplanResult(old, new, change, f"plan {change} takes {costs}")


def _await(
    box: Mailbox,
    names: tuple[str, ...],
    wish: WantPlan,
    look: Callable[[], SitesProgress],
    timeout: float,
) -> int:
    """The number of a plan that was wanted, as soon as all sites follow it."""
    until, request = time.monotonic() + timeout, wish.request
    while True:
        outcome = outcome_of(look(), names, request)
        if not outcome.change:
            _check(order_path(box.orders, wish))
        if not outcome.waiting_for and not outcome.given_up:
            return outcome.change
        if outcome.given_up:
            raise MigrationError(
                f"the plan stays as it is: change {outcome.change} was given up",
                remedy="see what `progress` says about it, and try again",
            )
        if time.monotonic() > until:
            withdraw(box.orders, request)
            listed = ", ".join(map(quoted, outcome.waiting_for))
            many = len(outcome.waiting_for) > 1
            stays = "all sites were ready, so it is followed when they answer: "
            raise MigrationError(
                f"{stays if outcome.agreed else 'the plan stays as it is: '}after {timeout:g} "
                f"seconds {listed} {'have' if many else 'has'} not answered",
                remedy="see whether the application runs and reaches the mailbox",
            )
        time.sleep(_LOOK_EVERY)


def _check(order: Path) -> None:
    """Refuse to wait for an order that was damaged before the sites have heard of it."""
    try:
        read_order(order)
    except SourceError as error:
        raise MigrationError(
            f"the plan stays as it is: {str(error).partition(';')[0]}",
            remedy="see who writes to that folder, and call replan again: it orders anew",
        ) from error


@dataclass(frozen=True, slots=True)
class ReplanStatus:
    """What has come of a wish so far."""

    change: int = 0
    """The number of its turn; 0 before that."""
    waiting_for: tuple[str, ...] = ()
    """The sites whose part is still to come; none if all follow the plan."""
    given_up: bool = False
    agreed: bool = False
    """Whether some site knows that all were ready, so that it cannot be given up any more."""


def outcome_of(progress: SitesProgress, names: tuple[str, ...], request: int) -> ReplanStatus:
    """What the reports of the sites say about a plan that was wanted.

    >>> from plait.sites.site.progress import sum_reports
    >>> told = {"step": 1, "sent_bytes": {}, "wish": 7, "turn": 3, "phase": "copying"}
    >>> standing = {"follows": 0, "plan": None, "abandoned": []}
    >>> reports = [{"site": site, **told, **standing} for site in ("oslo", "rome")]
    >>> outcome_of(sum_reports(reports), ("oslo", "rome"), 7).waiting_for
    ('oslo', 'rome')
    >>> reports[0]["phase"] = "local-ready"
    >>> outcome_of(sum_reports(reports), ("oslo", "rome"), 7).waiting_for
    ('rome',)
    """
    sites = progress.sites
    keeper = sites.get(names[0])
    change = 0 if keeper is None else keeper.wishes.get(request, 0)
    if keeper is None or not change:
        return ReplanStatus(0, names[:1])
    if change in keeper.last.get("abandoned", ()):
        return ReplanStatus(change, given_up=True)
    last = {name: sites[name].last if name in sites else {} for name in names}
    following = [name for name in names if name in sites and change in sites[name].plans]
    phases = {n: told.get("phase") for n, told in last.items() if told.get("turn") == change}
    late = [name for name in names if name not in following]
    slow = [name for name in late if phases.get(name) not in _READY]
    agreed = bool(following) or "global-ready" in phases.values()
    return ReplanStatus(change, tuple(slow or late), agreed=agreed)

"""Another plan over sites while they run on Spark: decided centrally, carried out by orders.

The decision is the central update of the paper (`plait.adapt.placement.central_update`): the greedy
plan for the links and for what is known of the streams now. Rates and sizes of rows are measured,
from the reports of the sites. Selectivity factors, windows and links are what the user says: mail
in a folder does not show how fast a link is.

It is carried out by `site_orders`. If somebody else has begun a change and not ended it, that
change is given up first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from plait.adapt.placement import central_update
from plait.errors import MigrationError
from plait.hosts.spark.mail import Mailbox
from plait.hosts.spark.site_orders import SiteOrder, install_order, publish, published
from plait.hosts.spark.site_progress import SitesProgress
from plait.optimize.site_cost import SiteSetting, StreamStatistics, jep_cost
from plait.plan.sites import Jep
from plait.query.names import quoted

_LOOK_EVERY = 0.25
"""Seconds between two looks at the reports."""


@dataclass(frozen=True, slots=True)
class Replanned:
    """What came of looking for another plan."""

    old: Jep
    new: Jep
    change: int | None = None
    """The number of the change; None if the old plan is still the best."""
    stamp: int = 0
    """The heads from this stamp on follow the new plan."""
    reason: str = ""

    def __str__(self) -> str:
        return self.reason


def running_plan(box: Mailbox, first: Jep) -> tuple[int, Jep]:
    """The number of the plan that sites follow, and the plan, as far as it was decided."""
    orders = published(box.orders)
    switched = {order.change for order in orders if order.kind == "switch"}
    plans = {o.change: o.jep for o in orders if o.kind == "install" and o.change in switched}
    number = max(plans, default=0)
    return number, plans.get(number, first)


def measured(
    progress: SitesProgress, known: Mapping[str, StreamStatistics]
) -> dict[str, StreamStatistics]:
    """What is known of the streams, with rates and sizes as they were measured.

    >>> from plait.hosts.spark.site_progress import added_up
    >>> told = {"site": "oslo", "sent_bytes": {}, "rows": {"a": 40}, "row_bytes": {"a": 800}}
    >>> first = {**told, "step": 1, "watermarks": {"a": 0}}
    >>> last = {**told, "step": 2, "watermarks": {"a": 10_000_000}}
    >>> known = {"a": StreamStatistics(1.0, 0.1, 99, 5)}
    >>> measured(added_up([first, last]), known)["a"]
    StreamStatistics(rate=4.0, factor=0.1, tuple_bytes=20.0, window=5)
    """
    found = dict(known)
    for site in progress.sites.values():
        for stream, (rows, span) in site.arrived.items():
            if stream not in found:
                continue
            if rows and span > 0:
                found[stream] = replace(found[stream], rate=1e6 * rows / span)
            came = site.streams["rows"].get(stream, 0)
            if came and (size := site.streams["row_bytes"].get(stream, 0)):
                found[stream] = replace(found[stream], tuple_bytes=size / came)
    return found


def replanned(
    box: Mailbox,
    setting: SiteSetting,
    first: Jep,
    look: Callable[[], SitesProgress],
    timeout: float,
    given: Jep | None = None,
) -> Replanned:
    """Look for a better plan, or take the one that is given, and change to it."""
    number, old = running_plan(box, first)
    new = central_update(setting, old).plan if given is None else given
    before, after = jep_cost(setting, old), jep_cost(setting, new)
    costs = f"{1000 * after:.3g} ms per second instead of {1000 * before:.3g}"
    if new == old:
        return Replanned(old, old, reason=f"the plan {number} is the best that is known")
    orders = published(box.orders)
    for order in orders:
        if not any(o.change == order.change and o.place for o in orders):
            publish(box.orders, SiteOrder(order.change, 1, "give-up"))
    change = 1 + max((order.change for order in orders), default=0)
    names = setting.sites.names
    _await(names, look, lambda told: len(told.get("plans", [0])) == 1, timeout, "has two plans")
    publish(box.orders, install_order(setting.sites, change, new))
    try:
        held = _await(
            names,
            look,
            lambda told: change in told.get("plans", ()) and told.get("hold") is not None,
            timeout,
            "is not ready for the new plan",
        )
    except MigrationError:
        publish(box.orders, SiteOrder(change, 1, "give-up"))
        raise
    stamp = max(int(told["hold"]) for told in held.values())
    decided = publish(box.orders, SiteOrder(change, 1, "switch", stamp))
    if decided.kind != "switch":
        raise MigrationError(
            f"change {change} of the plan was given up by somebody else", remedy="try again"
        )
    return Replanned(old, new, change, decided.stamp, f"plan {change} takes {costs}")


def _await(
    names: tuple[str, ...],
    look: Callable[[], SitesProgress],
    done: Callable[[Mapping[str, Any]], bool],
    timeout: float,
    otherwise: str,
) -> dict[str, Mapping[str, Any]]:
    """The last reports of all sites, as soon as this is so at all of them."""
    until = time.monotonic() + timeout
    while True:
        sites = look().sites
        last = {name: sites[name].last if name in sites else {} for name in names}
        missing = [name for name in names if not done(last[name])]
        if not missing:
            return last
        if time.monotonic() > until:
            listed = ", ".join(map(quoted, missing))
            raise MigrationError(
                f"the plan stays as it is: after {timeout:g} seconds {listed} {otherwise}",
                remedy="see whether the application runs and reaches the mailbox",
            )
        time.sleep(_LOOK_EVERY)

"""Orders to sites on Spark: how a plan over sites is replaced while it runs.

An order is a file in the mailbox, written once and never changed. Every application reads the
orders as a stream, so Spark's log says which batch brings which order, and a repeated batch obeys
the same ones. Three orders make up a change of plan:

- `install`: have this plan beside the one that runs, and get the windows that it needs. A site that
  has them *holds* its heads from its next stamp on and says so in its report: it is ready.
- `switch`: all sites were ready; heads from this stamp on follow the new plan.
- `give-up`: do without the new plan.

*Why all sites do the same.* There is one decision per change, `switch` or `give-up`, in one file
whose name follows from the number of the change. Whoever comes first has decided. It is `switch`
only if every site was ready, as its committed report says, and a site that is ready waits for the
decision however long it takes. So no site can switch while another one gives up. This is the
two-phase switch-over of `plait.protocol.switch_over` with the mailbox in the place of messages:
local-ready is the report, and global-ready is the decision, which all can read.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from plait.errors import SourceError
from plait.node.site import Site
from plait.plan.sites import Jep, Sites
from plait.plan.sites_serde import from_dict, to_dict

OrderKind: TypeAlias = Literal["install", "switch", "give-up"]
_DECISIONS: tuple[OrderKind, ...] = ("switch", "give-up")


@dataclass(frozen=True, slots=True, order=True)
class SiteOrder:
    """What all sites are told.

    >>> SiteOrder.from_json(SiteOrder(1, 1, "switch", 40).to_json())
    SiteOrder(change=1, place=1, kind='switch', stamp=40, plan=None)
    """

    change: int
    """The number of the change, which is also that of the new plan."""
    place: int
    """0 for the first order of a change, 1 for the decision."""
    kind: OrderKind
    stamp: int = 0
    plan: str | None = None
    """Sites and plan as JSON."""

    def to_json(self) -> str:
        """For a file."""
        return json.dumps(
            {
                "change": self.change,
                "kind": self.kind,
                "stamp": self.stamp,
                "plan": None if self.plan is None else json.loads(self.plan),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> SiteOrder:
        """The inverse of `to_json`."""
        try:
            given: dict[str, Any] = json.loads(text)
            kind: OrderKind = given["kind"]
            plan = given["plan"]
            return cls(
                int(given["change"]),
                int(kind in _DECISIONS),
                kind,
                int(given["stamp"]),
                None if plan is None else json.dumps(plan),
            )
        except (ValueError, TypeError, KeyError) as error:
            raise SourceError(
                f"an order to sites cannot be read: {error}", remedy="put its file back from a copy"
            ) from error

    @property
    def jep(self) -> Jep:
        """The plan to install."""
        return from_dict(json.loads(self.plan or "null"))[1]


def install_order(sites: Sites, change: int, jep: Jep) -> SiteOrder:
    """The order to install a plan."""
    return SiteOrder(change, 0, "install", plan=json.dumps(to_dict(sites, jep)))


def publish(folder: Path, order: SiteOrder) -> SiteOrder:
    """Write an order; what is returned is the order in force, which may be an earlier one."""
    path = folder / f"{order.change:06d}-{order.place}.json"
    draft = folder / f"_{os.getpid()}-{os.urandom(4).hex()}"
    try:
        draft.write_text(order.to_json())
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)
    return SiteOrder.from_json(path.read_text())


def published(folder: Path) -> list[SiteOrder]:
    """All orders so far."""
    found = (path for path in folder.glob("*.json") if not path.name.startswith("_"))
    return sorted(SiteOrder.from_json(path.read_text()) for path in found)


def obey(site: Site, order: SiteOrder) -> None:
    """Do what an order says, before a step. What has been done before is not done again."""
    number = order.change
    if order.kind == "install":
        # A site that is still getting rid of the plan before waits: the change will be given up.
        if len(site.plans) == 1 and number > max(site.plans):
            site.install(number, order.jep)
    elif order.kind == "switch":
        site.switch(number, order.stamp)
    else:
        site.give_up(number)


def ready(site: Site) -> bool:
    """Whether a site has everything that a new plan needs, and does not hold its heads yet."""
    newest = max(site.plans)
    waits = newest > site.eras.plan_at(site.clock + 1) and site.eras.hold is None
    return waits and site.is_full(newest)


def standing(site: Site) -> dict[str, Any]:
    """How a site stands with plans, for its report."""
    return {
        "plans": sorted(site.plans),
        "follows": site.eras.plan_at(site.clock + 1),
        "hold": site.eras.hold,
        "abandoned": sorted(site.eras.abandoned),
    }

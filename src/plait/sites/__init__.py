"""Joins of streams that arrive at different sites.

`plans` says who joins what and where, `planner` chooses such a plan and decides when to change it,
`site` executes one site's operators, `protocol` changes plans among sites (CNU, DNU and the
two-phase switch-over), and `spark` runs it all. Begin with `plans/plan.py`, then `site/site.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.exports import lazy

if TYPE_CHECKING:
    from plait.sites.planner.cost import SiteSetting as SiteSetting
    from plait.sites.planner.policy import PlacementPolicy as PlacementPolicy
    from plait.sites.plans.plan import Jep as Jep
    from plait.sites.plans.plan import SiteLink as SiteLink
    from plait.sites.site.progress import SitesProgress as SitesProgress
    from plait.sites.spark.join import PlacedJoin as PlacedJoin
    from plait.sites.spark.join import place as place
    from plait.sites.spark.replans import ReplanResult as ReplanResult

__all__ = [
    "Jep",
    "PlacedJoin",
    "PlacementPolicy",
    "ReplanResult",
    "SiteLink",
    "SiteSetting",
    "SitesProgress",
    "place",
]

_PLACES = {
    "Jep": "plait.sites.plans.plan",
    "PlacedJoin": "plait.sites.spark.join",
    "PlacementPolicy": "plait.sites.planner.policy",
    "ReplanResult": "plait.sites.spark.replans",
    "SiteLink": "plait.sites.plans.plan",
    "SiteSetting": "plait.sites.planner.cost",
    "SitesProgress": "plait.sites.site.progress",
    "place": "plait.sites.spark.join",
}

__getattr__ = lazy(__name__, _PLACES)


def __dir__() -> list[str]:
    return sorted(__all__)

"""A picture of sites: the way of each head stream through them, before and after a re-plan.

One column for each head stream, the old plan above the new one. Links are grey, slow ones (less
than half of the usual rate) red and dotted. A solid arrow carries joined tuples, a dashed one the
stream whose window is kept at the other end. Joins are numbered in their order, at the site where
they run. A panel whose sequence has changed has a coloured frame. Costs are those of the model, in
seconds per second; below, also what the old plan would cost now.
"""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

from plait.sites.planner.cost import SiteSetting, jep_cost, sep_costs
from plait.sites.plans.plan import Jep, Sep, Sites, steps

_REACH = 1.0
_CIRCLE = 0.17
_COLOURS = ("#1b6ca8", "#c8553d", "#2e8b57", "#7b4fa3", "#b8860b", "#008b8b")
_SLOW = "#d62728"


def draw_replan(before: SiteSetting, old: Jep, after: SiteSetting, new: Jep, path: Path) -> Path:
    """Draw two plans of the same streams into one PNG; where it is."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    heads = before.sites.streams
    figure, axes = plt.subplots(
        2, len(heads), figsize=(3.0 * len(heads), 7.6), squeeze=False, layout="constrained"
    )
    for row, (setting, jep, when) in enumerate(((before, old, "before"), (after, new, "after"))):
        total = 0.0
        for column, head in enumerate(heads):
            sep, axis = jep.of(head), axes[row][column]
            cost = sum(sep_costs(setting, sep))
            total += cost
            _panel(axis, setting.sites, sep, _COLOURS[column % len(_COLOURS)])
            changed = old.of(head) != new.of(head)
            axis.set_title(f"{head}: {cost:.2f} s/s" + (" (changed)" if changed and row else ""),
                           fontsize=11, color=_COLOURS[column % len(_COLOURS)])  # fmt: skip
            for side in axis.spines.values():
                side.set_visible(bool(row and changed))
                side.set_color(_COLOURS[column % len(_COLOURS)])
        kept = f" (old plan: {jep_cost(after, old):.2f})" if row else ""
        axes[row][0].set_ylabel(f"{when}: {total:.2f} s/s{kept}", fontsize=12)
    figure.suptitle("The way of each head stream", fontsize=13)
    _legend(figure)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _places(sites: Sites) -> dict[str, tuple[float, float]]:
    """The sites on a circle, the first one at the upper left."""
    count = len(sites.names)
    turns = [0.625 - n / count for n in range(count)]
    return {
        site: (_REACH * math.cos(2 * math.pi * turn), _REACH * math.sin(2 * math.pi * turn))
        for site, turn in zip(sites.names, turns, strict=True)
    }


def _panel(axis: Any, sites: Sites, sep: Sep, colour: str) -> None:
    places = _places(sites)
    usual = statistics.median(link.rate for link in sites.links) if sites.links else 0.0
    for link in sites.links:
        (x0, y0), (x1, y1) = places[link.origin], places[link.target]
        slow = link.rate < usual / 2
        axis.plot([x0, x1], [y0, y1], color=_SLOW if slow else "0.85", zorder=2 if slow else 1,
                  linestyle=":" if slow else "-", linewidth=2.2 if slow else 1.2)  # fmt: skip
    joins: dict[str, list[str]] = {}
    for number, step in enumerate(steps(sites, sep), 1):
        joins.setdefault(step.site, []).append(f"{number}. ⋈ {step.stream}")
        if (shipped := step.shipped()) is not None:
            flow, origin, target = shipped
            tuples = flow == step.flow
            _arrow(axis, places[origin], places[target], colour if tuples else "0.35", tuples)
        last = step.site
    joins[last].append(f"→ {sites.results}")
    for site, (x, y) in places.items():
        at_home = [stream for stream in sites.streams if sites.home(stream) == site]
        begins = sep.head in at_home
        axis.add_patch(
            _circle((x, y), colour if begins else "white", colour if site in joins else "0.5")
        )
        axis.text(x, y, site, ha="center", va="center", fontsize=9, zorder=6,
                  color="white" if begins else "black")  # fmt: skip
        up = 1 if y >= 0 else -1
        lines = [", ".join(at_home), *joins.get(site, [])]
        axis.text(x, y + up * 1.35 * _CIRCLE, "\n".join(lines), ha="center", fontsize=8.5,
                  va="bottom" if up > 0 else "top", zorder=6, linespacing=1.25)  # fmt: skip
    axis.set(xlim=(-1.2, 1.2), ylim=(-1.6, 1.6), xticks=[], yticks=[], aspect="equal")


def _circle(centre: tuple[float, float], fill: str, edge: str) -> Any:
    from matplotlib.patches import Circle

    return Circle(centre, _CIRCLE, facecolor=fill, edgecolor=edge, linewidth=1.6, zorder=5)


def _arrow(
    axis: Any, origin: tuple[float, float], target: tuple[float, float], colour: str, tuples: bool
) -> None:
    from matplotlib.patches import FancyArrowPatch

    axis.add_patch(
        FancyArrowPatch(
            origin, target, arrowstyle="-|>", mutation_scale=13, color=colour, zorder=4,
            linewidth=2.0 if tuples else 1.4, linestyle="-" if tuples else (0, (4, 2)),
            shrinkA=15, shrinkB=15, connectionstyle="arc3,rad=0.16",
        )
    )  # fmt: skip


def _legend(figure: Any) -> None:
    from matplotlib.lines import Line2D

    kinds: list[tuple[str, str, Any, float]] = [
        ("joined tuples", "0.1", "-", 2.0),
        ("a stream, to keep its window there", "0.35", "--", 1.4),
        ("link", "0.85", "-", 1.2),
        ("slow link", _SLOW, ":", 2.2),
    ]
    lines = [Line2D([], [], color=c, linestyle=s, linewidth=w, label=n) for n, c, s, w in kinds]
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), frameon=False)

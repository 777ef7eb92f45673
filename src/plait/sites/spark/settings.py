"""What users say about sites, links and streams, as values that a plan can be chosen from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from plait.errors import (
    LinkWithoutRate,
    PlanError,
    SiteError,
    SiteWithoutStream,
    UnknownStream,
    did_you_mean,
)
from plait.optimize.statistics import Statistics
from plait.query.builder import JoinBuilder
from plait.query.names import quoted
from plait.query.query import Query
from plait.sites.planner.assumptions import GivenStatistics
from plait.sites.planner.policy import PlacementPolicy
from plait.sites.plans.plan import Jep, SiteLink, Sites, check_jep
from plait.sites.plans.serde import loads

_LONGEST = 60
"""Characters of a site's name: escaped, it must fit into the name of a folder."""

_REFUSED = {
    "limits": ("budget", "leave it out: sites have no limits for CPU and memory"),
    "enforced": ("budget", "leave it out: sites have no limits for CPU and memory"),
    "router": ("engine", "leave it out: a site runs the operators of its plan"),
    "adaptive": (
        "adapt",
        "give the policy to the sites: place(..., adapt=plait.sites.PlacementPolicy(...))",
    ),
    "balanced": ("balance", "leave it out: the rows of a site stay there"),
    "known": (
        "statistics",
        'give what is known of a stream: place(..., statistics={"a": {"factor": 0.01}})',
    ),
}
"""What a join can be told and sites cannot: the method that says so, and what to do instead."""

GivenLink = SiteLink | tuple[str, str, float, float]
GivenAdapt = PlacementPolicy | bool | None


def settings_of(question: object) -> dict[str, Any]:
    """What a join was told beside its question, as far as it is not the default."""
    assert is_dataclass(question)
    asked = {"query", "sources", *(field.name for field in fields(JoinBuilder))}
    told = {f.name: f for f in fields(question) if f.name not in asked}
    return {
        name: getattr(question, name)
        for name, field in told.items()
        if getattr(question, name) != field.default
    }


def site_options(
    question: object, adapt: GivenAdapt, statistics: Mapping[str, GivenStatistics]
) -> tuple[GivenAdapt, dict[str, GivenStatistics]]:
    """How sites adapt and what is known of streams, with what the join was told about that.

    What sites cannot do is refused by name, instead of being ignored.
    """
    settings, known = settings_of(question), dict(statistics)
    if isinstance(settings.get("adaptive"), bool) and adapt is None:
        adapt = settings.pop("adaptive")
    if settings.get("balanced") is False:  # which is how sites are
        del settings["balanced"]
    found = settings.get("known")
    if isinstance(found, Statistics) and found == Statistics(rates=found.rates):
        for name, estimate in settings.pop("known").rates.items():
            said, rate = known.get(name, {}), {"rate": estimate.value}
            known[name] = {**rate, **said} if isinstance(said, Mapping) else said
    for name, value in settings.items():
        method, remedy = _REFUSED.get(name, (name, "leave it out"))
        raise SiteError(
            f"the join was told {method} ({_short(value)}), which sites do not know", remedy=remedy
        )
    return adapt, known


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def given_homes(query: Query, at: Mapping[str, str | Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """The home of each stream, in the order of the query."""
    if not isinstance(at, Mapping):
        raise SiteError(
            f"at={at!r} does not say which streams arrive at which site",
            remedy='give a mapping: at={"oslo": ["trades"], "rome": ["quotes"]}',
        )
    found: dict[str, str] = {}
    for site, streams in at.items():
        _check_name(site)
        listed: object = [streams] if isinstance(streams, str) else streams
        here = [*listed] if isinstance(listed, Iterable) else []
        if not here:
            raise SiteWithoutStream(
                f"no stream arrives at the site {quoted(site)}",
                remedy="leave it out, or list its streams in at={...}",
            )
        for stream in here:
            if stream not in query.names:
                raise UnknownStream(
                    f"the join has no stream {stream!r} that could arrive at {quoted(site)}",
                    remedy=did_you_mean(stream, query.names),
                )
            if stream in found:
                raise SiteError(
                    f"the stream {quoted(stream)} arrives at two sites, {quoted(found[stream])} "
                    f"and {quoted(site)}",
                    remedy="name it once",
                )
            found[stream] = site
    for stream in query.names:
        if stream not in found:
            raise SiteError(
                f"the stream {quoted(stream)} arrives at no site",
                remedy="name it in at={...}",
            )
    return tuple((stream, found[stream]) for stream in query.names)


def _check_name(site: object) -> None:
    """Names of sites are parts of names of folders."""
    text = site.strip() if isinstance(site, str) and site.isprintable() else ""
    if not text or len(text) > _LONGEST or set(text) & {"/", "\\"}:
        raise SiteError(
            f"a site cannot be named {site!r}",
            remedy=f"give a text of 1 to {_LONGEST} printable characters without slashes",
        )


def given_links(
    names: Sequence[str],
    links: Iterable[GivenLink],
    latency: float | None = None,
    rate: float | None = None,
) -> tuple[SiteLink, ...]:
    """The links that are listed, and general ones between all other pairs of sites.

    >>> [link.rate for link in given_links(["a", "b"], [("a", "b", 0.1, 10)], 0.005, 99)]
    [10, 99]
    """
    found = {}
    for given in links:
        link = _as_link(given)
        if (link.origin, link.target) in found:
            raise SiteError(
                f"the link from {quoted(link.origin)} to {quoted(link.target)} is there twice",
                remedy="name it once",
            )
        found[link.origin, link.target] = link
    if (latency is None) != (rate is None):
        raise LinkWithoutRate(
            "links in general have a latency but no rate, or a rate but no latency",
            remedy="give both, latency=0.005 and rate=1_000_000, or neither",
        )
    if latency is not None and rate is not None:
        pairs = [(o, t) for o in names for t in names if o != t]
        general = {pair: SiteLink(*pair, latency, rate) for pair in pairs}
        found = {**general, **found}
    return tuple(found.values())


def _as_link(given: object) -> SiteLink:
    if isinstance(given, SiteLink):
        return given
    if isinstance(given, Sequence) and len(given) == len(fields(SiteLink)):
        return SiteLink(*given)
    raise LinkWithoutRate(
        f"the link {given!r} is not complete",
        remedy="give (origin, target, latency in seconds, bytes per second)",
    )


def given_plan(sites: Sites, plan: Jep | str) -> Jep:
    """A plan that was given, as a value or as the JSON text of sites and plan.

    >>> from plait.sites.plans.plan import Sep, fully_connected
    >>> given_plan(fully_connected({"a": "n1", "b": "n2"}, 0.005, 128_000), Jep(()))
    Traceback (most recent call last):
    plait.errors.SiteError: the plan has no sequence for the stream a
    """
    if isinstance(plan, str):
        try:
            others, plan = loads(plan)
        except PlanError as error:
            raise SiteError(
                f"the plan that was given cannot be read: {error}",
                remedy="give JSON as in the file sites.json of a mailbox",
            ) from error
        if others.homes != sites.homes:
            raise SiteError(
                "the plan is for streams that arrive at other sites",
                remedy="give a plan for these: placed.plan shows one",
            )
    check_jep(sites, plan)
    return plan

"""What the sites of a join have done, added up from the reports of their steps.

Also whom they wait for, what they have decided about their plan, why, and why they have stayed with
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from plait.codec import from_plain
from plait.node.reports.report import add
from plait.query.names import quoted
from plait.sites.plans.plan import Jep, SiteLink

_COUNTS = ("results", "probes", "matches", "compared")
_BY_STREAM = ("rows", "null_times", "null_keys", "filtered", "late")


@dataclass(frozen=True, slots=True, order=True)
class SiteDecision:
    """Something that was decided about the plan at a site, or seen and left as it is."""

    time: int
    """By the host's clock, in microseconds since 1970."""
    site: str
    step: int
    text: str

    def __str__(self) -> str:
        return f"{quoted(self.site)}, step {self.step}: {self.text}"


@dataclass(frozen=True, slots=True)
class UnansweredSite:
    """A site that another one waits for."""

    site: str
    packets: int
    """Packets to it that it has not acknowledged."""
    since: int
    """When it last acknowledged something, by the clock of who waits; in microseconds since 1970.
    0 if that is not known."""
    resent: bool
    """Whether some were sent again."""
    tuples: int
    """Tuples that cannot be joined before it answers."""

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.since // 1_000_000, UTC)
        since = f" since {moment:%Y-%m-%d %H:%M:%S} UTC" if self.since else ""
        many = "packets are" if self.packets != 1 else "packet is"
        text = f"waits for {quoted(self.site)}{since}: {self.packets:,} {many} not acknowledged"
        text += ", and sent again" if self.resent else ""
        return text + (f"; {self.tuples:,} tuples wait there" if self.tuples else "")


@dataclass(frozen=True, slots=True)
class SiteProgress:
    """What one site has done."""

    site: str
    steps: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    """Results, probes, matches and comparisons."""
    streams: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Rows of each stream that arrived here, and those set aside, by reason."""
    sent_bytes: Mapping[str, int] = field(default_factory=dict)
    """What it has sent to each other site."""
    measured: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What was last measured of each stream that arrives here, and what was made of it."""
    plans: Mapping[int, Jep] = field(default_factory=dict)
    """The plans that it has followed, by number."""
    wishes: Mapping[int, int] = field(default_factory=dict)
    """For plans that were wanted from outside, the number under which they had their turn."""
    last: Mapping[str, Any] = field(default_factory=dict)
    """Its last report: clock, windows, waiting tuples, watermarks, plans."""
    unanswered: tuple[UnansweredSite, ...] = ()
    """The sites that have not acknowledged all packets from this one."""


@dataclass(frozen=True, slots=True)
class SitesProgress:
    """What all sites of a join have done; print it to see it."""

    sites: Mapping[str, SiteProgress]
    decisions: tuple[SiteDecision, ...] = ()
    """What was decided about the plan, and why, in order."""
    strays: tuple[str, ...] = ()
    """What is among the orders and is not followed, with the reason."""

    @property
    def results(self) -> int:
        """Results that have come out, over all sites."""
        return sum(site.counts.get("results", 0) for site in self.sites.values())

    @property
    def link_bytes(self) -> dict[tuple[str, str], int]:
        """Bytes that were sent over each link."""
        return {
            (name, target): size
            for name, site in self.sites.items()
            for target, size in site.sent_bytes.items()
        }

    @property
    def plan(self) -> tuple[int, Jep] | None:
        """The newest plan that some site follows, with its number; None before the first step."""
        plans = {number: jep for site in self.sites.values() for number, jep in site.plans.items()}
        return max(plans.items()) if plans else None

    @property
    def links(self) -> list[SiteLink]:
        """The links that are not as they were said to be at first."""
        newest = max(self.sites.values(), key=lambda site: site.last.get("turn", 0), default=None)
        return [] if newest is None else [SiteLink(*x) for x in newest.last.get("links", ())]

    def __str__(self) -> str:
        lines = [f"results {self.results:,}", "sites"]
        for name, site in sorted(self.sites.items()):
            came = ", ".join(f"{quoted(s)} {n:,}" for s, n in site.streams.get("rows", {}).items())
            kept = ", ".join(f"{quoted(s)} {n:,}" for s, n in site.last["windows"].items())
            lines.append(
                f"  {quoted(name)}  {site.steps} steps · rows {came or 'none'} · windows "
                f"{kept or 'none'} · plan {site.last['follows']}"
            )
        lines.append("links")
        for (origin, target), size in sorted(self.link_bytes.items()):
            lines.append(f"  {quoted(origin)} → {quoted(target)}  {size:,} bytes")
        waiting = [(name, one) for name, site in self.sites.items() for one in site.unanswered]
        if waiting:
            lines.append("waiting for answers")
        lines += [f"  {quoted(name)} {one}" for name, one in sorted(waiting, key=lambda w: w[0])]
        seen = [(s, told) for site in self.sites.values() for s, told in site.measured.items()]
        if seen:
            lines.append("streams, as last measured")
        for stream, told in sorted(seen, key=lambda one: one[0]):
            lines.append(
                f"  {quoted(stream)}  {told['rate']:.3g} rows/s · factor {told['factor']:.3g} · "
                f"{told['tuple_bytes']:.3g} bytes · {told['notice']}"
            )
        if self.strays:
            lines.append("among the orders")
        lines += [f"  {stray}" for stray in self.strays]
        if self.decisions:
            lines.append("decisions")
            lines += [f"  {decision}" for decision in self.decisions]
        return "\n".join(lines)


def sum_reports(reports: Iterable[Mapping[str, Any]]) -> SitesProgress:
    """The sums of reports, in any order.

    >>> one = {"site": "oslo", "step": 1, "rows": {"a": 2}, "sent_bytes": {"rome": 10}}
    >>> two = {"site": "oslo", "step": 2, "rows": {}, "sent_bytes": {"rome": 5}}
    >>> sum_reports([two, one]).link_bytes
    {('oslo', 'rome'): 15}
    """
    by_site: dict[str, list[Mapping[str, Any]]] = {}
    for report in reports:
        by_site.setdefault(report["site"], []).append(report)
    decisions = sorted(
        SiteDecision(report.get("time", 0), name, report["step"], note)
        for name, told in by_site.items()
        for report in told
        for note in report.get("notes", ())
    )
    sites = {name: _one_site(name, by_site[name]) for name in sorted(by_site)}
    return SitesProgress(sites, tuple(decisions))


def _one_site(name: str, given: list[Mapping[str, Any]]) -> SiteProgress:
    reports = sorted(given, key=lambda report: int(report["step"]))
    sent: dict[str, int] = {}
    streams: dict[str, dict[str, int]] = {what: {} for what in _BY_STREAM}
    measured: dict[str, Mapping[str, Any]] = {}
    plans: dict[int, Jep] = {}
    for report in reports:
        for target, size in report["sent_bytes"].items():
            add(sent, target, size)
        for what in _BY_STREAM:
            for stream, n in report.get(what, {}).items():
                add(streams[what], stream, n)
        measured |= report.get("measured", {})
        if report.get("plan") is not None:
            plans[report["follows"]] = from_plain(Jep, report["plan"])
    counts = {what: sum(report.get(what, 0) for report in reports) for what in _COUNTS}
    wishes = {report["wish"]: report["turn"] for report in reports if report.get("wish")}
    return SiteProgress(
        site=name,
        steps=len(reports),
        counts=counts,
        streams=streams,
        sent_bytes=sent,
        measured=measured,
        plans=plans,
        wishes=wishes,
        last=reports[-1],
        unanswered=_unanswered(reports),
    )


def _unanswered(reports: list[Mapping[str, Any]]) -> tuple[UnansweredSite, ...]:
    """Whom a site waits for, by its reports in order."""
    last, times = reports[-1], {int(one["step"]): int(one.get("time", 0)) for one in reports}
    found = []
    for site, (count, since, resent) in sorted(last.get("unanswered", {}).items()):
        tuples = last.get("awaited", {}).get(site, 0)
        found.append(UnansweredSite(site, count, times.get(since, 0), resent, tuples))
    return tuple(found)

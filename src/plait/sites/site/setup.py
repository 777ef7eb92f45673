"""What a site is set up with, and what comes out of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from plait.errors import SiteError
from plait.node.batch import Aside
from plait.query.names import quoted
from plait.query.query import Query
from plait.sites.planner.assumptions import site_setting
from plait.sites.planner.cost import HASH, JoinPrices, SiteSetting, StreamStatistics
from plait.sites.planner.greedy import greedy
from plait.sites.planner.policy import PlacementPolicy
from plait.sites.plans.legs import site_part
from plait.sites.plans.plan import Jep, Sites
from plait.sites.site.packets import SiteChannel, SiteNews, SitePacket, UnansweredPackets
from plait.tuning import USUAL, Tuning


@dataclass(frozen=True, slots=True)
class SiteSetup:
    """What all sites of a join are set up with: a value that travels to wherever they run."""

    query: Query
    sites: Sites
    jep: Jep
    tuning: Tuning = USUAL
    seed: int = 0
    """What the hashes in the windows follow from; it need not be durable."""
    hash_bits: int = 64
    deliver: bool = True
    """Whether results are sent to the site for results; otherwise they come out where they are
    found."""

    ask: bool = True
    """Whether a site asks for the clock of another one that it waits for; if not, hosts make all
    sites beat from time to time."""

    policy: PlacementPolicy | None = None
    """When and how sites change the plan; without one it stays."""
    statistics: Mapping[str, StreamStatistics] | None = None
    """What is known of the streams; without it, what `planner.assumptions` assumes."""
    prices: JoinPrices = HASH
    automatic: bool = True
    """Whether sites change the plan by themselves, or only if that is wanted from outside."""

    @property
    def everyone(self) -> tuple[str, ...]:
        """All sites, also one that only gets results."""
        return tuple(dict.fromkeys([*self.sites.names, self.sites.results]))

    @property
    def setting(self) -> SiteSetting:
        """What the first plan was chosen from."""
        return site_setting(self.query, self.sites, self.statistics, self.prices)

    def __post_init__(self) -> None:
        query, sites = self.query, self.sites
        if sites.streams != query.names:
            raise SiteError(
                f"the sites have the streams {', '.join(map(quoted, sites.streams))}, the query "
                f"{', '.join(map(quoted, query.names))}",
                remedy="give each stream of the query a home, in the same order",
            )
        if query.lateness != "own":
            raise SiteError(
                "rows are to be late by the least watermark of all streams, which no site knows",
                remedy="let rows be late by the watermark of their own stream",
            )
        for stream in query.streams:
            if stream.idle is not None:
                raise SiteError(
                    f"the stream {quoted(stream.name)} has an idle time-out, but sites share no "
                    "clock by which it could be idle",
                    remedy="leave it out: a silent stream holds back windows, but no results",
                )
            if stream.ahead is not None:
                raise SiteError(
                    f"the rows of stream {quoted(stream.name)} may be only so far ahead of the "
                    "clock, but sites share no clock",
                    remedy="leave it out, and filter its DataFrame before the join",
                )
        site_part(sites, self.jep, sites.results)  # refuses a plan for other streams
        if self.policy is not None and self.automatic and self.jep != greedy(self.setting):
            raise SiteError(
                "the plan may change, but it is not the one that follows from the statistics",
                remedy="give the plan that `greedy` chooses for these statistics",
            )


@dataclass(slots=True)
class SiteReport:
    """What a site did in one step."""

    site: str
    step: int = 0
    clock: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    """Rows of each stream that arrived here."""
    null_times: dict[str, int] = field(default_factory=dict)
    null_keys: dict[str, int] = field(default_factory=dict)
    filtered: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    results: int = 0
    """Results that came out here."""
    probes: int = 0
    """Tuples that were looked up in a window."""
    matches: int = 0
    compared: int = 0
    """Pairs that nested loops over the windows would have looked at, as in the paper's cost."""
    sent_bytes: dict[str, int] = field(default_factory=dict)
    """Bytes of the packets to each other site, acknowledgements included."""
    windows: dict[str, int] = field(default_factory=dict)
    """Rows of each window that is kept here."""
    waiting: int = 0
    """Tuples that wait for a window to be complete."""
    watermarks: dict[str, int] = field(default_factory=dict)
    """Of the streams that arrive here; one that was never seen is missing."""
    turn: int = 0
    """The last change of the plan that it has heard of."""
    phase: str = "idle"
    """How far that change is here."""
    time: int = 0
    """The host's clock, in microseconds."""
    unanswered: dict[str, UnansweredPackets] = field(default_factory=dict)
    """By site, the packets to it that it has not acknowledged."""
    awaited: dict[str, int] = field(default_factory=dict)
    """By site, the tuples here that wait for its clock."""
    wish: int = 0
    """The number of the plan wanted from outside that this change is about; 0 if it is not."""
    links: list[tuple[str, str, float, float]] = field(default_factory=list)
    """(origin, target, latency, rate) of links that are not as they were said to be at first."""
    measured: dict[str, dict[str, float | str]] = field(default_factory=dict)
    """What was measured of streams in intervals that ended, and whether that is a change."""
    notes: list[str] = field(default_factory=list)
    """What was decided in this step about the plan, and why."""


@dataclass(slots=True)
class SiteOutcome:
    """What comes out of a step, to be handed on once the step is committed."""

    report: SiteReport
    results: list[pa.RecordBatch] = field(default_factory=list)
    aside: list[Aside] = field(default_factory=list)
    packets: list[SitePacket] = field(default_factory=list)
    news: dict[SiteChannel, SiteNews] = field(default_factory=dict)
    """What the numbered packets say, for hosts that look inside."""

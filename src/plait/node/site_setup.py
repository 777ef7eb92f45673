"""What a site is set up with, and what comes out of a step."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from plait.errors import SiteError
from plait.node.batch import Aside
from plait.node.site_packets import SitePacket
from plait.plan.site_legs import site_part
from plait.plan.sites import Jep, Sites
from plait.query.names import quoted
from plait.query.query import Query
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
        site_part(sites, self.jep, sites.results)  # refuses a plan for other streams


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
    """Bytes of the packets to each other site."""
    windows: dict[str, int] = field(default_factory=dict)
    """Rows of each window that is kept here."""
    waiting: int = 0
    """Tuples that wait for a window to be complete."""
    watermarks: dict[str, int] = field(default_factory=dict)
    """Of the streams that arrive here; one that was never seen is missing."""


@dataclass(slots=True)
class SiteOutcome:
    """What comes out of a step, to be handed on once the step is committed."""

    report: SiteReport
    results: list[pa.RecordBatch] = field(default_factory=list)
    aside: list[Aside] = field(default_factory=list)
    packets: list[SitePacket] = field(default_factory=list)

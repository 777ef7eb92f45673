"""Seed 001, table 3: how many messages plan modification and migration take.

The messages are those of the state machines: `plait_lab.protocol.cnu`, `plait.sites.protocol.dnu`
and `switch_over`, with the settings of section 5. The rate of one stream goes from low to high
and back; all other streams have 100 tuples/s. Another site than that of the stream is the centre.

The figures of the table stand beside the paper's, with the reasons why they differ (`_WHY`). Turns
and acknowledgements have no counterpart in the paper (see `plait_lab.protocol.message_kinds`); they
are counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from random import Random
from typing import cast

from plait.sites.planner.cost import StreamStatistics, paper_setting
from plait.sites.planner.greedy import greedy
from plait.sites.protocol import dnu, switch_over
from plait.sites.protocol.messages import Sent, SwitchMessage, UpdateMessage
from plait_lab.protocol.cnu import CentralSent, CopyWindow, central_update, ordered, report
from plait_lab.protocol.members import plan_of
from plait_lab.protocol.message_kinds import Kind, kind_of
from plait_lab.reporting.comparisons import Near
from plait_lab.reporting.report import (
    Claim,
    Note,
    Report,
    Series,
    at_least,
    at_most,
    by_paper,
    equal,
)

PAPER: Mapping[tuple[str, int, str], tuple[int, int, int]] = {
    ("CNU", 4, "up"): (4, 34, 24),
    ("DNU", 4, "up"): (65, 61, 44),
    ("CNU", 8, "up"): (8, 131, 112),
    ("DNU", 8, "up"): (561, 181, 152),
    ("CNU", 4, "down"): (4, 27, 24),
    ("DNU", 4, "down"): (59, 55, 32),
    ("CNU", 8, "down"): (8, 115, 112),
    ("DNU", 8, "down"): (283, 83, 48),
}
"""Table 3: modification, migration (with synchronization), synchronization messages."""

_MIGRATES_ONCE = (
    "in the paper a migration follows each swap, among its neighbours; here one migration follows "
    "the whole update, among all sites that it touched"
)
_WHY = {
    ("CNU", "migration"): "the paper does not list its requests for windows; here the centre sends "
    "one for each window that the new operators of a site need, except those that it keeps itself",
    ("DNU", "modification"): "how often streams swap depends on the prices of the operators, which "
    "the paper does not give, nor does it say what is sent when a placement changes",
    ("DNU", "migration"): f"{_MIGRATES_ONCE}, which asks for the windows that they do not have",
    ("DNU", "synchronization"): _MIGRATES_ONCE,
}
"""Why a column of the table may differ from the paper's."""
_NEAR = 0.15
_SIZES = (4, 8)
_CHANGED, _CENTRE = "S1", "N2"


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    low: float = 50.0
    """Tuples per second."""
    high: float = 200.0
    orders: int = 3
    """Orders of delivery that are tried; the counts must not depend on them."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Counted:
    """The messages of one change, by kind."""

    kinds: Counter[Kind]
    plan: str

    @property
    def columns(self) -> dict[str, int]:
        """As the paper counts: migration is requests for windows, and synchronization."""
        synchronization = self.kinds["synchronization"]
        return {
            "modification": self.kinds["modification"],
            "migration": self.kinds["window"] + synchronization,
            "synchronization": synchronization,
        }


def table3(options: Options, note: Note) -> Report:
    """The messages of central and distributed updates, beside those of the paper."""
    found: dict[tuple[str, int, str], Counted] = {}
    orders_agree = []
    for streams in _SIZES:
        for way, old, new in (
            ("up", options.low, options.high),
            ("down", options.high, options.low),
        ):
            note(f"{streams} streams, rate {way}")
            found["CNU", streams, way] = central(streams, old, new, Random(options.seed))
            each = [
                distributed(streams, old, new, Random(options.seed + n))
                for n in range(options.orders)
            ]
            found["DNU", streams, way] = each[0]
            orders_agree.append(all(one == each[0] for one in each))
    result = Report("sites/table3", asdict(options), seed="001", runtime="virtual")
    for (kind, streams, way), counted in found.items():
        row: dict[str, int] = {}
        pairs = zip(counted.columns.items(), PAPER[kind, streams, way], strict=True)
        for (column, ours), theirs in pairs:
            row |= {column: ours, f"paper's {column}": theirs}
        row["turns"] = counted.kinds["turn"]
        row["acknowledgements"] = counted.kinds["acknowledgement"]
        result.systems[f"{kind} {streams}-way {way}"] = row
    for kind in ("CNU", "DNU"):
        for way in ("up", "down"):
            counts = [found[kind, n, way].kinds["modification"] for n in _SIZES]
            label = f"{kind} modification, rate {way}"
            result.series.append(Series(label, _SIZES, counts, "messages", "streams"))
    result.claims = [*_claims(found, orders_agree), *_beside_the_paper(found)]
    return result


def _beside_the_paper(found: Mapping[tuple[str, int, str], Counted]) -> list[Claim]:
    """The columns of the table that follow from no formula, compared with the paper's."""
    claims = []
    for (kind, column), why in _WHY.items():
        keys = [key for key in PAPER if key[0] == kind]
        ours = [found[key].columns[column] for key in keys]
        place = list(found[keys[0]].columns).index(column)
        theirs = [PAPER[key][place] for key in keys]
        rows = ", ".join(f"{streams}-way {way}" for _, streams, way in keys)
        counts, expected = (", ".join(map(str, numbers)) for numbers in (ours, theirs))
        claims.append(
            by_paper(f"{kind.lower()}-{column}-count", "table 3",
                     f"{column} messages of {kind} ({rows})",
                     Near(ours, theirs, _NEAR), why, theirs=expected, measured=counts,
                     covers=["table 3"])
        )  # fmt: skip
    return claims


def _claims(found: Mapping[tuple[str, int, str], Counted], agree: list[bool]) -> list[Claim]:
    central_ones = {key: one for key, one in found.items() if key[0] == "CNU"}
    growth = max(
        found["DNU", 8, way].kinds["modification"] / found["DNU", 4, way].kinds["modification"]
        for way in ("up", "down")
    )
    more = min(
        found["DNU", n, way].kinds["modification"] / found["CNU", n, way].kinds["modification"]
        for n in _SIZES
        for way in ("up", "down")
    )
    same = [
        found["CNU", n, way].plan == found["DNU", n, way].plan
        for n in _SIZES
        for way in ("up", "down")
    ]
    return [
        _exact("cnu-modification", "CNU modification messages equal n", [
            (one.kinds["modification"], key[1]) for key, one in central_ones.items()]),
        _exact("cnu-synchronization", "CNU synchronization messages equal 2n(n-1)", [
            (one.kinds["synchronization"], 2 * key[1] * (key[1] - 1))
            for key, one in central_ones.items()]),
        at_most("dnu-growth", "DNU modification messages are O(n³): 8-way over 4-way", growth, 8.0),
        at_least("dnu-more", "DNU takes more modification messages than CNU: the least ratio",
                 more, 1.0),
        equal("same-plan", "CNU and DNU produce identical plans", [True, *same]),
        equal("any-order", "the counts and plans of DNU are those of every order of delivery",
              [True, *agree]),
    ]  # fmt: skip


def _exact(id_: str, claim: str, pairs: list[tuple[int, int]]) -> Claim:
    far = max(abs(count - expected) for count, expected in pairs)
    counts = ", ".join(str(count) for count, _ in pairs)
    wanted = ", ".join(str(expected) for _, expected in pairs)
    return Claim(id_, claim, counts, float(far), wanted, far == 0)


def central(streams: int, old: float, new: float, random: Random) -> Counted:
    """The messages of a central update and its migration."""
    before, after = (paper_setting(streams, {_CHANGED: rate}) for rate in (old, new))
    update = central_update(after, greedy(before))
    home = after.sites.home(_CHANGED)
    sent: list[Sent | CentralSent] = [
        *report(home, _CENTRE, _CHANGED, after.statistics[_CHANGED]),
        *ordered(update, _CENTRE),
        *switched(update.affected, random),
    ]
    return Counted(_kinds(sent), str(update.plan))


def distributed(streams: int, old: float, new: float, random: Random) -> Counted:
    """The messages of a distributed update and its migration."""
    before, after = (paper_setting(streams, {_CHANGED: rate}) for rate in (old, new))
    group, sent = updated(dnu.members(before, greedy(before)), after.statistics[_CHANGED], random)
    sites = after.sites
    touched = [site for site in sites.names if site in group[_CHANGED].touched]
    plan = plan_of(group)
    # The sites that need a window ask for it; what they have they need not ask for.
    windows = [
        CentralSent(copy.target, copy.origin, CopyWindow(copy.stream, copy.target))
        for copy in central_update(after, greedy(before)).copies
        if copy.origin != copy.target
    ]
    between = [one for one in sent if sites.home(one.sender) != sites.home(one.receiver)]
    return Counted(_kinds([*between, *windows, *switched(touched, random)]), str(plan))


def updated(
    group: dict[str, dnu.Member], statistics: StreamStatistics, random: Random
) -> tuple[dict[str, dnu.Member], list[Sent]]:
    """A distributed update whose messages arrive in any order."""
    group[_CHANGED], sent = dnu.change(group[_CHANGED], statistics)
    flying, everything = list(sent), list(sent)
    while flying:
        one = flying.pop(random.randrange(len(flying)))
        message = cast(UpdateMessage, one.message)
        group[one.receiver], sent = dnu.receive(group[one.receiver], one.sender, message)
        flying += sent
        everything += sent
    return group, everything


def switched(affected: Iterable[str], random: Random) -> list[Sent]:
    """What is sent in a switch-over in which nothing is lost."""
    names = list(affected)
    sites = {name: switch_over.begin(1, name, names)[0] for name in names}
    flying: list[Sent] = []
    for name in names:
        sites[name], sent = switch_over.windows_full(sites[name], 0)
        flying += sent
    everything = list(flying)
    while flying:
        one = flying.pop(random.randrange(len(flying)))
        message = cast(SwitchMessage, one.message)
        sites[one.receiver], sent = switch_over.receive(sites[one.receiver], message)
        flying += sent
        everything += sent
    return everything


def _kinds(sent: Iterable[Sent | CentralSent]) -> Counter[Kind]:
    return Counter(kind_of(one.message) for one in sent)

"""Sites in one process with a network that does everything a network may do, and hosts that crash.

`SiteWorld` runs a join over sites by a random schedule. Packets are delayed, reordered, repeated
and lost for good: only the sites themselves send them again. The clock of each host may jump by
days, forward and back. Some links are much slower than others, and of a change of the plan one site
may hear when it is over for all others. Steps take the next rows of some streams and some of the
packets. A step that crashes has no effect but on the processes: the site is loaded from what was
committed, and the rows and packets come again. Two attempts at a step may race: each has the rows
in another order, the state that counts is that of one, and what is sent is that of the other. In
the end all streams end, and the network is quiet when nothing is left to be sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from random import Random

import pyarrow as pa

from plait.engine.intake.times import AFTER_ALL_TIMES
from plait.query.expr import Call, Column
from plait.query.query import Query
from plait.sites.planner.assumptions import site_setting
from plait.sites.planner.cost import HASH, NESTED_LOOP
from plait.sites.planner.greedy import greedy
from plait.sites.planner.policy import PlacementPolicy, UpdateWay
from plait.sites.plans.plan import Jep, Placement, Sep, SiteLink, Sites, fully_connected
from plait.sites.protocol.messages import WantPlan, Wish, Withdraw
from plait.sites.site.packets import SitePacket
from plait.sites.site.setup import SiteOutcome, SiteSetup
from plait.sites.site.site import Site
from plait.testing.examples import clique
from plait.testing.oracle.answer import multiset
from plait_lab.laws.checks import difference
from plait_lab.laws.hosts import HostAnswer, definition
from plait_lab.laws.processors import MemoryStore
from plait_lab.laws.strategies.histories import Batch, History

_ROUNDS = 20_000
"""Rounds of steps after which a world that is not quiet never will be."""
_DAYS = 30 * 86_400_000_000
"""What a wrong clock is wrong by, in microseconds."""


@dataclass
class PlanChange:
    """A migration under way, as those who carry it out know it."""

    number: int
    jep: Jep
    ready: dict[str, int] = field(default_factory=dict)
    """The sites whose windows are full, and the stamp from which each holds its heads."""
    given_up: bool = False
    deaf: str | None = None
    """The site that hears of the decision when all others have done with the old plan."""

    def decided(self, sites: Sequence[str]) -> int | None:
        """The stamp of the switch, once all sites are ready."""
        return max(self.ready.values()) if len(self.ready) == len(sites) else None


class SiteWorld:
    """All sites of a join, their stores, and the packets between them.

    With `changes`, the plan changes now and then to a random one, or is about to and does not. With
    `wishes`, somebody wants another plan now and then, and perhaps wants it no longer.
    """

    def __init__(
        self, setup: SiteSetup, chance: Random, *, changes: float = 0.0, wishes: float = 0.0
    ) -> None:
        self.setup = setup
        self.chance = chance
        names = dict.fromkeys([*setup.sites.names, setup.sites.results])
        self.stores = {name: MemoryStore() for name in names}
        self.sites = {name: Site.load(setup, name) for name in names}
        self.network: list[SitePacket] = []
        self.answer = HostAnswer()
        self.crashes = 0
        self.faults = 0
        """Packets that were lost, or delivered more than once."""
        self.sent_bytes: Counter[tuple[str, str]] = Counter()
        self._tokens = count(1)
        self._wrong = chance.choice((0, _DAYS))
        self._changes = changes
        self._change: PlanChange | None = None
        self.switched = self.abandoned = 0
        self._wishing = wishes
        self._wishes: list[Wish] = []
        speeds = (0.05, 0.3, 0.9, 0.9) if chance.random() < 0.7 else (0.6,)
        self._speeds = {(a, b): chance.choice(speeds) for a in names for b in names}
        """The chance that a packet which is on its way comes in the next step."""
        self._heard = dict.fromkeys(names, 0)
        """How many of the wishes each site has heard."""

    def run(self, batches: Sequence[Mapping[str, pa.Table]]) -> HostAnswer:
        """All batches, in the order of each stream, and then the end."""
        homes = dict(self.setup.sites.homes)
        left = {stream: [batch[stream] for batch in batches if stream in batch] for stream in homes}
        while any(left.values()):
            name = self.chance.choice(list(self.sites))
            eager = self._eagerness()
            mine = [s for s in homes if homes[s] == name and left[s]]
            here = [stream for stream in mine if self.chance.random() < eager]
            rows = {stream: left[stream][0] for stream in here}
            if self._step(name, rows, self._delivered(name)):
                for stream in here:
                    left[stream].pop(0)
        ending = [*self.sites]
        self.chance.shuffle(ending)
        for name in ending:
            while not self._step(name, {}, self._delivered(name), ended=True):
                pass
        self._calm()
        return self.answer

    def _eagerness(self) -> float:
        """How soon rows come. They come slowly while windows are copied, or the plan would change
        after the last row; and soon while some sites have switched and others have not."""
        planners = [site.planning.planner for site in self.sites.values() if site.planning]
        phases = {planner.phase for planner in planners}
        if phases - {"idle"}:
            return 0.4 if "migrated" in phases else 0.03
        change = self._change
        if change is None or change.decided(self.setup.sites.names) is not None:
            return 0.6
        return 0.1

    def _delivered(self, name: str) -> list[SitePacket]:
        """Some of the packets for a site, in any order; some stay in the network as well."""
        mine = [
            p for p in self.network
            if p.target == name and self.chance.random() < self._speeds[p.origin, name]
        ]  # fmt: skip
        self.chance.shuffle(mine)
        for packet in mine:
            if self.chance.random() < 0.7:
                self.network.remove(packet)
            else:
                self.faults += 1
        return mine

    def _step(
        self,
        name: str,
        rows: Mapping[str, pa.Table],
        packets: Sequence[SitePacket],
        *,
        ended: bool = False,
    ) -> bool:
        """One step of a site; whether it was committed."""
        attempt, chance = deepcopy(self.stores[name]), self.chance
        self._migrate(name)
        wishes = self._heard_by(name)
        step = partial(
            Site.step,
            packets=packets,
            now=chance.choice((0, 0, 0, chance.randrange(100), self._wrong)),
            beat=chance.random() < 0.1,
            again=chance.random() < 0.1,
            ended=ended,
            wishes=wishes,
            token=str(next(self._tokens)),
        )
        outcome = step(self.sites[name], rows, store=attempt)
        if chance.random() < 0.15:
            self.crashes += 1
            self.network += packets
            self._reload(name)
            return False
        if self._change is None and chance.random() < 0.2:
            attempt, first = deepcopy(self.stores[name]), self.sites[name]
            self.sites[name] = Site.load(self.setup, name, attempt)
            other = step(self.sites[name], self._disordered(rows), store=attempt)
            assert self.sites[name].header == first.header, f"attempts at {name} differ"
            assert _numbered(other) == _numbered(outcome), f"attempts at {name} send other packets"
        self.stores[name] = attempt
        self._heard[name] += len(wishes)
        self._commit(name, outcome)
        self._note(name)
        if chance.random() < 0.1:
            self._reload(name)
        return True

    def _disordered(self, rows: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The same rows in another order."""
        found = {}
        for stream, table in rows.items():
            order = [*range(table.num_rows)]
            self.chance.shuffle(order)
            found[stream] = table.take(order) if order else table
        return found

    def _commit(self, name: str, outcome: SiteOutcome) -> None:
        schema = self.setup.query.schema
        self.answer.results += multiset(pa.Table.from_batches(outcome.results, schema))
        for rows in outcome.aside:
            self.answer.set_aside(self.setup.query, rows)
        self.answer.filtered += Counter(outcome.report.filtered)
        for packet in outcome.packets:
            self.sent_bytes[name, packet.target] += len(packet.body)
            if self.chance.random() < 0.9:
                self.network.append(packet)
            else:
                self.faults += 1

    def _heard_by(self, name: str) -> list[Wish]:
        """The wishes that a site hears in a step; now and then there is a new one."""
        if self.chance.random() < self._wishing:
            last = self._wishes[-1] if self._wishes else None
            if isinstance(last, WantPlan) and self.chance.random() < 0.5:
                self._wishes.append(Withdraw(last.request))
            else:
                self._wishes.append(drawn_wish(self.setup, len(self._wishes) + 1, self.chance))
        known = self._heard[name]
        return self._wishes[known : known + self.chance.randrange(3)]

    def _migrate(self, name: str) -> None:
        """Begin a change of plan, or tell a site what it is to do for the one under way."""
        site, change, names = self.sites[name], self._change, self.setup.sites.names
        one_plan = all(len(self.sites[other].plans) == 1 for other in names)
        if change is None and one_plan and self.chance.random() < self._changes:
            number = 1 + self.switched + self.abandoned
            deaf = self.chance.choice([*names, None])
            jep = drawn_jep(self.setup.query, self.chance)
            self._change = change = PlanChange(number, jep, deaf=deaf)
        if change is None or name not in names:
            return
        if change.given_up:
            site.migration.give_up(change.number)
        elif (stamp := change.decided(names)) is not None:
            others = [self.sites[other] for other in names if other != name]
            waits = name == change.deaf and any(len(other.plans) > 1 for other in others)
            if self.chance.random() < (0.01 if waits else 0.3):  # it hears of it sooner or later
                site.migration.switch(change.number, stamp)
        elif change.number not in site.plans:
            site.migration.install(change.number, change.jep)
        elif site.migration.is_full(change.number) and name not in change.ready:
            site.migration.hold(site.clock + 1)

    def _note(self, name: str) -> None:
        """What a site has committed counts; a change is over when it is so at all sites."""
        site, change, names = self.sites[name], self._change, self.setup.sites.names
        if change is None:
            return
        if site.migration.eras.hold is not None and name in names:
            change.ready[name] = site.migration.eras.hold
        if change.decided(names) is None and self.chance.random() < 0.01:
            change.given_up = True
        eras = [self.sites[other].migration.eras for other in names]
        if change.given_up and all(change.number in e.abandoned for e in eras):
            self._change, self.abandoned = None, self.abandoned + 1
        elif all(e.plan_at(AFTER_ALL_TIMES) == change.number for e in eras):
            self._change, self.switched = None, self.switched + 1

    def _reload(self, name: str) -> None:
        """A new process, from what was committed."""
        self.sites[name] = Site.load(self.setup, name, self.stores[name])
        assert self.sites[name].step_number == 0 or self.stores[name].header is not None

    def _calm(self) -> None:
        """Go on until everything has come; no more changes begin, and clocks are right.

        A clock that is 30 days ahead in every fifth step ends the patience of whoever waits for an
        answer, so a change that somebody wants would be tried and given up again and again.
        """
        self._changes = self._wishing = 0.0
        self._wrong = 0
        self._speeds = dict.fromkeys(self._speeds, 0.6)
        for _ in range(_ROUNDS):
            for name in self.sites:
                self._step(name, {}, self._delivered(name))
            waiting = any(site.links.outstanding() for site in self.sites.values())
            if not (self.network or waiting or self._change) and self._planned():
                return
        raise AssertionError("the network never becomes quiet")

    def _planned(self) -> bool:
        """Whether no turn is under way."""
        planners = [site.planning.planner for site in self.sites.values() if site.planning]
        heard = all(number == len(self._wishes) for number in self._heard.values())
        return heard and all(p.done and not p.wanted and not p.wishes for p in planners)


def _numbered(outcome: SiteOutcome) -> list[tuple[str, int]]:
    return [(packet.target, packet.number) for packet in outcome.packets]


def assert_agreed(world: SiteWorld) -> None:
    """All sites follow one plan, and believe in the same links.

    If they change it by themselves, it is that of algorithm 1 for the statistics in effect. So a
    central and a distributed update end in the same plan.
    """
    names = world.setup.sites.names
    planners = [p.planner for p in (world.sites[name].planning for name in names) if p is not None]
    adopted = {s: m.me.statistics for p in planners for s, m in p.members.items()}
    links, wanted = planners[0].links, planners[0].current
    if world.setup.automatic:
        wanted = greedy(world.setup.setting.with_links(links).with_statistics(adopted))
    for planner in planners:
        assert planner.links == links, f"{planner.me} believes in {planner.links}, not {links}"
        site = world.sites[planner.me]
        assert planner.current == wanted, f"{planner.me}: {planner.current}, not {wanted}"
        (number,) = site.plans
        assert site.plans[number] == wanted, f"{planner.me} runs {site.plans[number]}"


def assert_quiet(world: SiteWorld) -> None:
    """After the end nothing is kept: no tuples that wait, no rows, no packets."""
    for name, site in world.sites.items():
        report = site.step(store=None).report
        assert not report.waiting, f"tuples wait at {name}"
        if name in world.setup.sites.names:
            assert len(site.plans) == 1, f"{name} has the plans {list(site.plans)}"
        assert not any(report.windows.values()), f"{name} keeps {report.windows}"
        assert not world.stores[name].rows, f"{name} stores {list(world.stores[name].rows)}"


def drawn_sites(query: Query, chance: Random) -> Sites:
    """A home for each stream, links of their own, and somewhere for the results."""
    names = [f"n{i}" for i in range(chance.randint(1, len(query.names)))]
    homes = {stream: chance.choice(names) for stream in query.names}
    if chance.random() < 0.6:
        homes = {stream: f"n{i}" for i, stream in enumerate(query.names)}
    used = list(dict.fromkeys(homes.values()))
    others = [
        SiteLink(a, b, chance.random(), chance.choice((10, 1e6)))
        for a in used
        for b in used
        if a != b and chance.random() < 0.3
    ]
    results = chance.choice([*used, "results"])
    return fully_connected(homes, 0.005, 128_000, others=others, results=results)


def drawn_jep(query: Query, chance: Random) -> Jep:
    """Any order and any placement for each head."""
    return Jep(tuple(_drawn_sep(query, head, chance) for head in query.names))


def _drawn_sep(query: Query, head: str, chance: Random) -> Sep:
    order = [stream for stream in query.names if stream != head]
    chance.shuffle(order)
    places: tuple[Placement, ...] = (0, 1)
    return Sep(head, tuple(order), tuple(chance.choice(places) for _ in order))


def drawn_wish(setup: SiteSetup, request: int, chance: Random) -> WantPlan:
    """Another plan, for other links and streams; any, if sites do not change it by themselves."""
    links = [
        replace(link, rate=chance.choice((10, 1e6))) if chance.random() < 0.4 else link
        for link in setup.sites.links
    ]
    known = {
        stream: replace(known, rate=chance.choice((1.0, 100.0, 3000.0)))
        for stream, known in setup.setting.statistics.items()
    }
    setting = setup.setting.with_links(links).with_statistics(known)
    plan = greedy(setting) if setup.automatic else drawn_jep(setup.query, chance)
    return WantPlan(request, plan, tuple(known.items()), tuple(links))


def without_keys(query: Query, chance: Random) -> Query:
    """The same streams joined by comparisons: some equalities, or all, are left out."""
    kept = tuple(e for e in query.equalities if chance.random() < 0.3)
    a, b = chance.sample(query.names, 2)
    compare = Call(chance.choice(("le", "ne", "ge")), (Column(a, "v"), Column(b, "v")))
    return replace(query, equalities=kept, residuals=(*query.residuals, compare))


def drawn_policy(update: UpdateWay, chance: Random) -> PlacementPolicy:
    """A policy that asks for another plan at every occasion, and loses patience sooner or later."""
    return PlacementPolicy(
        chance.choice((0.0, 0.0, 0.5)),
        update,
        chance.choice((1, 1, 10, 1_000_000)),
        chance.choice((0.0, 0.0, 1.0)),
        chance.choice((1, 3, 64)),
        chance.choice((1, 50, 10**9)),
    )


def marched(chance: Random) -> History:
    """Streams with one key whose rows come one by one, for so long that plans change meanwhile."""
    query = clique(3)
    tick = query.bounds.widest // chance.choice((1, 2))
    streams = tuple(
        replace(stream, delay=chance.choice((0, tick, 4 * tick))) for stream in query.streams
    )
    batches: tuple[Batch, ...] = tuple(
        {name: [{"ts": number * tick, "k": 1}]} for number in range(24) for name in query.names
    )
    return History(replace(query, streams=streams), batches)


def tied(chance: Random) -> History:
    """Streams with few keys whose rows come several at a time, all of them at one instant."""
    query = clique(3)
    tick = query.bounds.widest
    streams = tuple(replace(stream, delay=4 * tick) for stream in query.streams)
    batches: tuple[Batch, ...] = tuple(
        {
            name: [
                {"ts": number * tick, "k": chance.randrange(3)} for _ in range(chance.randint(1, 6))
            ]
        }
        for number in range(16)
        for name in query.names
    )
    return History(replace(query, streams=streams), batches)


def assert_lawful_at_sites(
    history: History,
    seed: int,
    *,
    theta: bool = False,
    changes: float = 0.0,
    update: UpdateWay | None = None,
    wishes: float = 0.0,
) -> SiteWorld:
    """Run a history at sites: results and rows set aside are those of the definition.

    With `update` the sites themselves change the plan, and agree on it in the end. With `wishes`
    they are told to change it, and agree, too.
    """
    chance = Random(seed)
    query = replace(history.query, lateness="own")
    if theta:
        query = without_keys(query, chance)
    history = replace(history, query=query)
    setup = SiteSetup(
        query,
        drawn_sites(query, chance),
        drawn_jep(query, chance),
        replace(history.tuning, resend_steps=chance.choice((1, 2, 5, 5, 32))),
        chance.getrandbits(64),
        chance.choice((64, 64, 2)),
        deliver=chance.random() < 0.8,
        ask=True,
    )
    if update is not None:
        policy = drawn_policy(update, chance)
        prices = chance.choice((HASH, NESTED_LOOP))
        jep = greedy(site_setting(query, setup.sites, prices=prices))
        setup = replace(setup, jep=jep, policy=policy, prices=prices)
    elif wishes:
        policy = drawn_policy("central", chance)
        setup = replace(setup, policy=policy, automatic=False)
    world = SiteWorld(setup, chance, changes=changes, wishes=wishes)
    found = world.run(history.tables())
    wanted = definition(query, history.batches)
    about = f"{setup.jep}\nhomes {setup.sites.homes}, results {setup.sites.results}\n{history!r}"
    assert found.results == wanted.results, f"{difference(found.results, wanted.results)}\n{about}"
    assert found == wanted, about
    if update is not None or wishes:
        assert_agreed(world)
    assert_quiet(world)
    return world

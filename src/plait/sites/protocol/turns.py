"""Who changes the plan of the sites, and when it is over: one change at a time.

*Turns.* One site, the first, is the *keeper*. A site whose stream has changed tells it: in a
central update by reporting the statistics, in a distributed one by asking for a turn. In its turn
the keeper plans (CNU), or the asking site begins the distributed update (DNU). Either ends in a
plan that all sites install under the number of the turn, and in a switch-over between all of them.
Each site then tells the keeper that it is done and has one plan again, and the next turn can begin.
So at most one change is under way, and every site has finished with a turn before it hears of the
next. The paper says nothing of changes that meet.

*Correct output.* After each turn all sites have the same plan and the same view of it: the new one,
which is that of algorithm 1 for the statistics in effect, or the one before. What a distributed
update does to the members is a draft. The switch-over, which all sites end in the same way, decides
whether it replaces what was there.

*Wishes.* Whoever runs the join may want another plan, for other links perhaps, and hands it to the
keeper (`WantPlan`). It waits for its turn like any other change, and ends like one. A wish that is
withdrawn is given up wherever that is possible; the switch-over makes that the outcome for all, or
the plan is followed by all.

*From seats to a plan.* A distributed update leaves each site with the seats of its own streams. The
site whose turn it is collects them and sends the plan to all, since a site installs its part of a
whole plan.

*Delivery.* Every message once; in any order between different pairs of sites. The links of sites
do that (`plait.sites.site.links`), and a site saves its planner with its other state. So a crash is
nothing but a delay. A site that has no answer for too long gives up by `time_out`, which the
switch-over makes the outcome for all or, where that is not possible any more, asks about.

*Cost.* Beside modification and switch-over: a request, a grant and n-1 reports of the end for each
turn, and 2(n-1) messages to collect the seats in a distributed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast, get_args

from plait.errors import MigrationError
from plait.query.names import quoted
from plait.sites.planner.cost import SiteSetting, StreamStatistics, jep_cost
from plait.sites.planner.greedy import greedy
from plait.sites.planner.policy import Notice, PlacementPolicy, notice
from plait.sites.plans.plan import Jep, Placement, Sep, SiteLink
from plait.sites.protocol import dnu, switch_over
from plait.sites.protocol.messages import (
    NewPlan,
    ReportStatistics,
    Sent,
    ShownSeat,
    ShownSeats,
    ShowSeats,
    SiteMessage,
    SwitchMessage,
    TurnOver,
    UpdateMessage,
    WantPlan,
    WantTurn,
    YourTurn,
)
from plait.sites.protocol.switch_over import SwitchOver


@dataclass(frozen=True, slots=True)
class InTurn:
    """A message of a turn. Those that ask for one belong to turn 0."""

    turn: int
    sent: Sent


@dataclass(frozen=True, slots=True)
class SitePlanner:
    """What a site knows of changes of the plan; also the record that it saves."""

    me: str
    current: Jep
    """The plan in effect."""
    members: Mapping[str, dnu.Member]
    """Its streams in the plan in effect."""
    draft: Mapping[str, dnu.Member]
    """Its streams in the plan that is being made."""
    turn: int = 0
    """The last turn that it has heard of."""
    switch: SwitchOver | None = None
    """Its part in the switch-over of that turn."""
    plan: Jep | None = None
    """What that turn is to lead to, once it is known."""
    done: bool = True
    """Whether it has told the keeper that its part in that turn is over."""
    deadline: int | None = None
    """When it loses patience with that turn."""
    failures: int = 0
    """Turns that were given up since the last that was not; they make it more patient."""
    asked: frozenset[str] = frozenset()
    """Its streams that it has asked a turn for."""
    newest: Mapping[str, StreamStatistics] = field(default_factory=dict)
    """What was last measured of its streams."""
    mine: str | None = None
    """The stream whose turn it is, if that is one of its own."""
    shown: Mapping[str, ShownSeats] = field(default_factory=dict)
    """In its own turn, the seats that others have shown."""
    wanted: tuple[tuple[str, str], ...] = ()
    """The keeper: who wants a turn, for which stream."""
    known: Mapping[str, StreamStatistics] = field(default_factory=dict)
    """The keeper of a central update: the statistics that were last reported."""
    finished: frozenset[str] = frozenset()
    """The keeper: who is done with the turn that was granted last."""
    wishes: tuple[WantPlan, ...] = ()
    """The keeper: plans that were wanted from outside and have not had their turn."""
    wish: WantPlan | None = None
    """The wish that the turn is about, if it is about one."""
    withdrawn: int = 0
    """Wishes up to this one are withdrawn."""
    links: tuple[SiteLink, ...] = ()
    """The links that are not as they were said to be at first."""
    reason: str = ""
    """Why the plan was last to be changed, or why it stayed; for people."""

    @property
    def phase(self) -> str:
        """How far the turn is here, for people."""
        if self.switch is None or self.done:
            return "idle"
        if self.switch.phase == "copying" and self.plan is None:
            return "planning"
        return self.switch.phase


PlannerTurn: TypeAlias = tuple[SitePlanner, tuple[InTurn, ...]]
"""A planner after an event, and what it sends, also to itself."""


@dataclass(frozen=True, slots=True)
class Turns:
    """What never changes while sites plan: policy, sites and prices."""

    policy: PlacementPolicy
    setting: SiteSetting
    """With the statistics that the first plan was made from."""
    first: Jep | None = None
    """The first plan, if it is not that of algorithm 1."""
    automatic: bool = True
    """Whether sites change the plan by themselves, or only if that is wanted from outside."""

    @property
    def names(self) -> tuple[str, ...]:
        """All sites."""
        return self.setting.sites.names

    @property
    def keeper(self) -> str:
        """The site that keeps the turns; also the centre of a central update."""
        return self.names[0]

    def start(self, site: str) -> SitePlanner:
        """A site before the first turn.

        >>> from plait.sites.planner.cost import paper_setting
        >>> Turns(PlacementPolicy(), paper_setting(3)).start("N2").phase
        'idle'
        """
        plan = greedy(self.setting) if self.first is None else self.first
        group = _at(site, dnu.members(self.setting, plan))
        # No turn has been granted, so everybody is done with the last one.
        finished = frozenset(self.names)
        known = dict(self.setting.statistics)
        return SitePlanner(site, plan, group, group, known=known, finished=finished)

    # --- events ----------------------------------------------------------------------------------

    def measured(
        self, planner: SitePlanner, stream: str, now: StreamStatistics
    ) -> tuple[PlannerTurn, Notice]:
        """The statistics of a stream were measured: if they have changed enough, ask for a turn."""
        member = planner.members[stream]
        seen = notice(
            self.policy,
            member.seats.values(),
            member.me,
            replace(member.me, statistics=now),
            member.prices,
        )
        planner = replace(planner, newest={**planner.newest, stream: now})
        busy = stream in planner.asked or not planner.done
        if not seen.exceeded or busy or not self.automatic:
            return (planner, ()), seen
        message: SiteMessage = WantTurn(stream)
        if self.policy.update == "central":
            # What was reported is what later measurements are compared with.
            message = ReportStatistics(stream, now)
            told = replace(member, me=replace(member.me, statistics=now))
            planner = replace(planner, members={**planner.members, stream: told})
        else:
            planner = replace(planner, asked=planner.asked | {stream})
        return (planner, (InTurn(0, Sent(planner.me, self.keeper, message)),)), seen

    def receive(self, planner: SitePlanner, given: InTurn, now: int) -> PlannerTurn:
        """What a site makes of a message."""
        message, sender = given.sent.message, given.sent.sender
        if isinstance(message, WantTurn | ReportStatistics):
            return self._wanted(planner, sender, message)
        if isinstance(message, WantPlan) and not given.turn:
            return self._wished(planner, message)
        planner = self._entered(planner, given.turn, now)
        if given.turn != planner.turn:
            return planner, ()  # of a turn that is over
        if isinstance(message, TurnOver):
            return self._finished(planner, sender)
        assert planner.switch is not None
        if isinstance(message, get_args(SwitchMessage)):
            return self._switched(
                planner, switch_over.receive(planner.switch, cast(SwitchMessage, message))
            )
        if planner.switch.over:
            return planner, ()  # it was given up here while the message was on its way
        match message:
            case YourTurn():
                return self._begun(planner, message.stream)
            case ShowSeats():
                shown = shown_seats(planner.draft)
                return planner, self._say(planner, sender, shown)
            case ShownSeats():
                return self._shown(replace(planner, shown={**planner.shown, sender: message}))
            case NewPlan():
                return self._planned(planner, message), ()
            case WantPlan():
                return self._planned_by_wish(planner, message)
            case _:
                update = cast(UpdateMessage, message)
                return self._updated(planner, sender, given.sent.receiver, update)

    def full(self, planner: SitePlanner, stamp: int) -> PlannerTurn:
        """The plan is installed here with all windows, and heads wait from this stamp on."""
        assert planner.switch is not None
        return self._switched(planner, switch_over.windows_full(planner.switch, stamp))

    def time_out(self, planner: SitePlanner, now: int) -> PlannerTurn:
        """If its patience is over, give up, or ask where that is not possible any more."""
        switch, deadline = planner.switch, planner.deadline
        if switch is None or switch.over or deadline is None or now < deadline:
            return planner, ()
        planner = replace(planner, deadline=now + self._patience(planner))
        return self._switched(planner, switch_over.time_out(switch))

    def withdraw(self, planner: SitePlanner, request: int) -> PlannerTurn:
        """Do without the wishes up to this one, as far as that is possible."""
        left = tuple(wish for wish in planner.wishes if wish.request > request)
        planner = replace(planner, wishes=left, withdrawn=max(planner.withdrawn, request))
        if planner.wish is None or planner.wish.request > request or planner.switch is None:
            return planner, ()
        return self._switched(planner, switch_over.time_out(planner.switch))

    def over(self, planner: SitePlanner) -> PlannerTurn:
        """The site has ended its part in the turn and has one plan again: tell the keeper."""
        assert planner.switch is not None
        told = self._say(planner, self.keeper, TurnOver(planner.switch.phase == "migrated"))
        return replace(planner, done=True, deadline=None), told

    # --- turns -----------------------------------------------------------------------------------

    def _say(self, planner: SitePlanner, to: str, message: SiteMessage) -> tuple[InTurn, ...]:
        return (InTurn(planner.turn, Sent(planner.me, to, message)),)

    def _to_all(self, planner: SitePlanner, message: SiteMessage) -> tuple[InTurn, ...]:
        return tuple(one for name in self.names for one in self._say(planner, name, message))

    def _patience(self, planner: SitePlanner) -> int:
        return self.policy.patience << min(planner.failures, 20)

    def _entered(self, planner: SitePlanner, turn: int, now: int) -> SitePlanner:
        """On the first message of a turn, whatever it is, the site takes part in it."""
        if turn <= planner.turn:
            return planner
        assert planner.done, "the keeper lets a turn begin when all sites are done with the last"
        return replace(
            planner,
            turn=turn,
            switch=switch_over.begin(turn, planner.me, self.names)[0],
            plan=None,
            done=False,
            deadline=now + self._patience(planner),
            draft=planner.members,
            mine=None,
            shown={},
            wish=None,
        )

    def _wanted(
        self, planner: SitePlanner, site: str, message: WantTurn | ReportStatistics
    ) -> PlannerTurn:
        if isinstance(message, ReportStatistics):
            known = {**planner.known, message.stream: message.statistics}
            return self._granted(replace(planner, known=known))
        # A site asks again when a turn is over; one request is enough for what is newest then.
        wanted = dict.fromkeys([*planner.wanted, (site, message.stream)])
        return self._granted(replace(planner, wanted=tuple(wanted)))

    def _wished(self, planner: SitePlanner, wish: WantPlan) -> PlannerTurn:
        if planner.me != self.keeper or wish.request <= planner.withdrawn:
            return planner, ()
        return self._granted(replace(planner, wishes=(*planner.wishes, wish)))

    def _finished(self, planner: SitePlanner, site: str) -> PlannerTurn:
        return self._granted(replace(planner, finished=planner.finished | {site}))

    def _granted(self, planner: SitePlanner) -> PlannerTurn:
        """The keeper lets the next turn begin if the last one is over everywhere."""
        if len(planner.finished) < len(self.names):
            return planner, ()
        number, to = planner.turn + 1, self.names
        message: SiteMessage | None = None
        if planner.wishes:
            message, *left = planner.wishes
            planner = replace(planner, wishes=tuple(left))
        elif not self.automatic:
            pass
        elif self.policy.update == "central":
            planner, message = self._central(planner)
        elif planner.wanted:
            (site, stream), *rest = planner.wanted
            planner = replace(planner, wanted=tuple(rest))
            message, to = YourTurn(stream), (site,)
        if message is None:
            return planner, ()
        planner = replace(planner, finished=frozenset())
        return planner, tuple(InTurn(number, Sent(planner.me, name, message)) for name in to)

    def _central(self, planner: SitePlanner) -> tuple[SitePlanner, NewPlan | None]:
        """The plan of algorithm 1 for what is known now, if that is another one, and the reason."""
        setting = self._setting(planner).with_statistics(planner.known)
        plan = greedy(setting)
        costs = [f"{1000 * jep_cost(setting, jep):,.1f}" for jep in (planner.current, plan)]
        if plan == planner.current:
            reason = f"the plan stays: at {costs[0]} ms per second it is still the best"
            return replace(planner, reason=reason), None
        reason = f"another plan takes {costs[1]} ms per second, this one {costs[0]}"
        return replace(planner, reason=reason), NewPlan(plan, tuple(planner.known.items()))

    def _setting(self, planner: SitePlanner) -> SiteSetting:
        """What plans are made from, with the links in effect."""
        return self.setting.with_links(planner.links) if planner.links else self.setting

    def _switched(self, planner: SitePlanner, turn: switch_over.SwitchTurn) -> PlannerTurn:
        """After an event of the switch-over: the draft counts, or it is gone."""
        before, (switch, sent) = planner.switch, turn
        planner = replace(planner, switch=switch)
        if switch.over and before is not None and not before.over:
            if switch.phase == "migrated":
                assert planner.plan is not None
                planner = replace(planner, members=planner.draft, current=planner.plan, failures=0)
                if planner.wish is not None:
                    known = {**planner.known, **dict(planner.wish.statistics)}
                    planner = replace(planner, links=planner.wish.links, known=known)
            else:
                planner = replace(planner, draft=planner.members, failures=planner.failures + 1)
            planner = replace(planner, asked=frozenset(), mine=None, shown={})
        return planner, tuple(InTurn(planner.turn, one) for one in sent)

    # --- plans -----------------------------------------------------------------------------------

    def _planned(self, planner: SitePlanner, message: NewPlan) -> SitePlanner:
        planner = replace(planner, plan=message.plan)
        if message.statistics:
            setting = self._setting(planner).with_statistics(dict(message.statistics))
            draft = _at(planner.me, dnu.members(setting, message.plan))
            planner = replace(planner, draft=draft)
        return planner

    def _planned_by_wish(self, planner: SitePlanner, wish: WantPlan) -> PlannerTurn:
        setting = self.setting.with_links(wish.links).with_statistics(dict(wish.statistics))
        draft = _at(planner.me, dnu.members(setting, wish.plan))
        planner = replace(planner, plan=wish.plan, draft=draft, wish=wish)
        if wish.request <= planner.withdrawn:
            return self.withdraw(planner, wish.request)
        return planner, ()

    def _begun(self, planner: SitePlanner, stream: str) -> PlannerTurn:
        """Its own turn: begin the distributed update."""
        planner = replace(planner, mine=stream)
        member, sent = dnu.change(planner.draft[stream], planner.newest[stream])
        return self._worked(planner, member, sent)

    def _updated(
        self, planner: SitePlanner, sender: str, receiver: str, message: UpdateMessage
    ) -> PlannerTurn:
        member, sent = dnu.receive(planner.draft[receiver], sender, message)
        return self._worked(planner, member, sent)

    def _worked(
        self, planner: SitePlanner, member: dnu.Member, sent: tuple[Sent, ...]
    ) -> PlannerTurn:
        """After an event of the distributed update; if it has ended, collect the seats."""
        planner = replace(planner, draft={**planner.draft, member.stream: member})
        told = tuple(InTurn(planner.turn, one) for one in sent)
        if member.stream == planner.mine and not member.unfinished:
            told += self._to_all(planner, ShowSeats())
            planner = replace(planner, mine=None)
        return planner, told

    def _shown(self, planner: SitePlanner) -> PlannerTurn:
        """When all seats are known, so is the plan."""
        if len(planner.shown) < len(self.names):
            return planner, ()
        plan = plan_of_seats(self.setting.sites.streams, planner.shown.values())
        same = plan == planner.current
        reason = "the plan stays: no stream has moved" if same else "streams have moved in the plan"
        planner = replace(planner, reason=f"turn {planner.turn}: {reason}")
        return planner, self._to_all(planner, NewPlan(plan))


def shown_seats(members: Mapping[str, dnu.Member]) -> ShownSeats:
    """What a site shows of its streams."""
    return ShownSeats(
        tuple((stream, member.first) for stream, member in members.items()),
        tuple(
            ShownSeat(stream, head, seat.after, seat.placement)
            for stream, member in members.items()
            for head, seat in member.seats.items()
        ),
    )


def plan_of_seats(streams: Iterable[str], shown: Iterable[ShownSeats]) -> Jep:
    """The plan that the seats of all streams make up.

    >>> from plait.sites.planner.cost import paper_setting
    >>> setting = paper_setting(4)
    >>> plan = greedy(setting)
    >>> seats = [shown_seats({s: m}) for s, m in dnu.members(setting, plan).items()]
    >>> plan_of_seats(setting.sites.streams, seats) == plan
    True
    """
    all_shown = list(shown)
    firsts = dict(first for one in all_shown for first in one.firsts)
    seats = {(seat.head, seat.stream): seat for one in all_shown for seat in one.seats}
    seps = []
    for head in streams:
        order: list[str] = []
        placements: list[Placement] = []
        at: str | None = firsts[head]
        while at is not None:
            if at in order:
                raise MigrationError(
                    f"the seats behind {quoted(head)} are a circle: {quoted(at)} comes twice",
                    remedy="collect them when the update has ended",
                )
            order.append(at)
            placements.append(seats[head, at].placement)
            at = seats[head, at].after
        seps.append(Sep(head, tuple(order), tuple(placements)))
    return Jep(tuple(seps))


def _at(site: str, group: Mapping[str, dnu.Member]) -> dict[str, dnu.Member]:
    return {stream: member for stream, member in group.items() if member.me.site == site}

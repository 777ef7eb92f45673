"""Distributed node-operator-set update (DNU, algorithm 3) as messages between streams' sites.

Every stream has a `Member` at its home, which knows the stream's statistics, its site's links and
its seat in each sequence: who comes before and after, and what arrives there. Nothing else.

*Correct output.* When all messages are delivered, every sequence is the one of algorithm 1 for the
statistics in effect, and the members' operators are the node operator sets of that plan.

*How.* A stream whose statistics changed asks the head of each sequence for a turn; a head grants
one at a time. Then one message passes the work on from place to place:

1. A stream that can only move to the end begins at its own place (`Begin`). One that may have
   become cheaper is compared with each stream from the beginning (`Scan`), and swaps with the first
   that it beats. In the sequence that the changed stream heads, all places are looked at.
2. At each place, from the changed one to the end, the cheapest stream is found by a `Relay` down to
   the last one, and swaps with the one that has the place (`Trade`, `Traded`, `NewNeighbour`).
3. The stream that now has the place chooses its placement, tells the site where its tuples come
   from (`Host`, `Unhost`), and lets the next one `Continue`.

*Deviations from the paper's text*, each needed to end in the plan of algorithm 1
(`tests/sites/protocol/test_dnu_letter.py` has the smallest counterexamples):
- Ties go to the stream that comes first in the query; «the first that is strictly cheaper» depends
  on the order before.
- Which way a stream moves is decided by its statistics and not by its cost in its present place
  (`plait.sites.planner.policy.direction`).
- Algorithm 3 has no case for the sequence headed by the changed stream; all of its places are
  looked at. Where a stream stays where it is, its placement and all places behind it are looked at
  again, because the tuples behind it have changed.
- A message that changes a neighbour is acknowledged before the work goes on. Otherwise the work
  could overtake it.

*Invariants.* At most one turn is under way in a sequence. A stream's new statistics take effect in
a sequence when its turn there begins, so each turn works in one change.

*Delivery.* Every message once, in any order. Nothing is installed by the update itself: the new
operators run after a switch-over. If a message is lost for good, there is no switch-over.

*Cost.* O(m) messages for each place, O(m²) for each sequence, O(m³) for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from plait.errors import MigrationError
from plait.query.names import quoted
from plait.sites.planner.cost import (
    JoinPrices,
    Prefix,
    SiteCandidate,
    SiteSetting,
    StreamStatistics,
    joined,
    one_way,
)
from plait.sites.planner.policy import Seat, direction
from plait.sites.plans.plan import Flow, Jep, SiteStep, check_jep
from plait.sites.protocol.messages import (
    Affected,
    Ask,
    Begin,
    Continue,
    Finished,
    Host,
    NewNeighbour,
    Noted,
    Relay,
    Scan,
    Sent,
    SequenceSettled,
    Stay,
    SwapWith,
    Touched,
    Trade,
    Traded,
    Unhost,
    UpdateMessage,
)

NOBODY: Touched = frozenset()


@dataclass(frozen=True, slots=True)
class HostedJoin:
    """A join of a sequence, with the stream at whose home its tuples are."""

    step: SiteStep
    last: bool
    host: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a member does once `notes` neighbours have acknowledged a change."""

    notes: int
    then: Literal["answer trade", "settle", "pass on"]
    touched: Touched
    trade: Traded | None = None
    to: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """A stream in the distributed update: what its site knows and is waiting for."""

    me: SiteCandidate
    prices: JoinPrices
    ranks: Mapping[str, int]
    """The order of the streams in the query, for ties."""
    homes: Mapping[str, str]
    results: str
    first: str
    """The first stream of its own sequence."""
    seats: Mapping[str, Seat]
    """Its place in the sequence of every other head."""
    adopted: Mapping[str, StreamStatistics]
    """The statistics in effect in each sequence."""
    joins: Mapping[str, HostedJoin]
    """The join with this stream, in each sequence."""
    guests: Mapping[tuple[str, str], HostedJoin]
    """Joins of other streams in which its site has a part, by head and stream."""
    turns: tuple[Ask, ...] = ()
    """Who wants to move in its own sequence; the first one has the turn."""
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    """In which sequences it waits for neighbours to note a change."""
    unfinished: frozenset[str] = frozenset()
    """The sequences in which its own change is not yet worked in."""
    touched: Touched = NOBODY
    """The sites that have changed since it asked."""

    @property
    def stream(self) -> str:
        """Its own name."""
        return self.me.stream


MemberTurn: TypeAlias = tuple[Member, tuple[Sent, ...]]
"""A member after an event, and what it sends."""


def members(setting: SiteSetting, jep: Jep) -> dict[str, Member]:
    """The members of a plan at rest.

    >>> from plait.sites.planner.cost import paper_setting
    >>> from plait.sites.planner.greedy import greedy
    >>> setting = paper_setting(3)
    >>> members(setting, greedy(setting))["S3"].seats["S1"].before
    'S2'
    """
    check_jep(setting.sites, jep)
    streams = setting.sites.streams
    seats: dict[str, dict[str, Seat]] = {s: {} for s in streams}
    joins: dict[str, dict[str, HostedJoin]] = {s: {} for s in streams}
    guests: dict[str, dict[tuple[str, str], HostedJoin]] = {s: {} for s in streams}
    for sep in jep.seps:
        prefix = setting.first(sep.head)
        places = (sep.head, *sep.order)
        for n, (stream, placement) in enumerate(zip(sep.order, sep.placements, strict=True), 1):
            after = places[n + 1] if n + 1 < len(places) else None
            seat = Seat(sep.head, places[n - 1], after, prefix, placement)
            join = _join(setting.candidate(stream), seat)
            seats[stream][sep.head] = seat
            joins[stream][sep.head] = join
            guests[join.host][sep.head, stream] = join
            prefix = joined(prefix, setting.candidate(stream), placement)
    return {
        stream: Member(
            me=setting.candidate(stream),
            prices=setting.prices,
            ranks={name: rank for rank, name in enumerate(streams)},
            homes=dict(setting.sites.homes),
            results=setting.sites.results,
            first=jep.of(stream).order[0],
            seats=seats[stream],
            adopted=dict.fromkeys(streams, setting.statistics[stream]),
            joins=joins[stream],
            guests=guests[stream],
        )
        for stream in streams
    }


def _join(me: SiteCandidate, seat: Seat) -> HostedJoin:
    """The join at a seat, as the operators of its sites need it."""
    flow = Flow(seat.head) if seat.before == seat.head else Flow(seat.before, seat.head)
    step = SiteStep(
        flow=flow,
        stream=me.stream,
        placement=seat.placement,
        source=seat.prefix.site,
        home=me.site,
        output=Flow(me.stream, seat.head),
    )
    return HostedJoin(step, seat.after is None, seat.prefix.host)


def change(member: Member, statistics: StreamStatistics) -> MemberTurn:
    """A stream whose statistics changed more than the threshold asks for a turn everywhere.

    >>> from plait.sites.planner.cost import paper_setting
    >>> from plait.sites.planner.greedy import greedy
    >>> group = members(paper_setting(3), greedy(paper_setting(3)))
    >>> _, sent = change(group["S2"], paper_setting(3, {"S2": 200.0}).statistics["S2"])
    >>> [(s.receiver, type(s.message).__name__) for s in sent]
    [('S1', 'Ask'), ('S1', 'Continue'), ('S3', 'Ask')]
    """
    if member.unfinished:
        raise MigrationError(
            f"the last change of {quoted(member.stream)} is not yet worked in everywhere",
            remedy="wait until it has finished",
        )
    work = _Work(member)
    heads = frozenset(member.homes)
    work.set(me=replace(member.me, statistics=statistics), unfinished=heads, touched=NOBODY)
    for head in member.ranks:
        old = member.adopted[head]
        ask = Ask(head, work.now.me, direction(old, statistics))
        if head == member.stream:
            work.asked(ask)
        else:
            work.send(head, ask)
    return work.turn()


def receive(member: Member, sender: str, message: UpdateMessage) -> MemberTurn:
    """What a member makes of a message."""
    work = _Work(member)
    match message:
        case Ask():
            work.asked(message)
        case Begin():
            work.adopt(message.head)
            work.choose(message.head, NOBODY)
        case Scan():
            work.scan(message)
        case Relay():
            work.relay(message)
        case Stay():
            work.settle(message.head, message.touched)
        case SwapWith():
            work.swap_with(message)
        case Trade():
            work.trade(sender, message)
        case Traded():
            work.traded(sender, message)
        case Continue():
            work.arrive(message)
        case NewNeighbour():
            work.beside(sender, message)
        case Host():
            work.host(sender, message)
        case Unhost():
            work.unhost(sender, message)
        case Noted():
            work.noted(message.head)
        case SequenceSettled():
            work.settled(message.touched)
        case Finished():
            work.finished(message)
        case Affected():
            pass  # for the site, which begins the switch-over
    return work.turn()


class _Work:
    """A member while it handles one event."""

    def __init__(self, member: Member) -> None:
        self.now = member
        self.sent: list[Sent] = []

    def turn(self) -> MemberTurn:
        return self.now, tuple(self.sent)

    def set(self, **fields: object) -> None:
        self.now = replace(self.now, **fields)  # type: ignore[arg-type]  # by name

    def send(self, to: str, message: UpdateMessage) -> None:
        self.sent.append(Sent(self.now.stream, to, message))

    def sit(self, head: str, seat: Seat) -> None:
        self.set(seats={**self.now.seats, head: seat})

    def candidate(self, head: str) -> SiteCandidate:
        """Itself, with the statistics in effect in a sequence."""
        return replace(self.now.me, statistics=self.now.adopted[head])

    def cost(self, head: str, prefix: Prefix) -> float:
        return one_way(prefix, self.candidate(head), self.now.prices).least

    def better(self, cost: float, stream: str, than: float, other: str) -> bool:
        ranks = self.now.ranks
        return (cost, ranks[stream]) < (than, ranks[other])

    # --- turns -----------------------------------------------------------------------------------

    def asked(self, ask: Ask) -> None:
        self.set(turns=(*self.now.turns, ask))
        if len(self.now.turns) == 1:
            self.grant()

    def grant(self) -> None:
        """Let the first who asked begin."""
        ask, me = self.now.turns[0], self.now.stream
        if ask.changed.stream == me:
            self.adopt(me)
            prefix = Prefix.of_head(me, self.now.me.site, self.now.adopted[me])
            self.send(self.now.first, Continue(me, me, prefix, NOBODY))
        elif ask.direction == "later":
            self.send(ask.changed.stream, Begin(me))
        else:
            self.send(self.now.first, Scan(me, ask.changed, ask.direction))

    def adopt(self, head: str) -> None:
        self.set(adopted={**self.now.adopted, head: self.now.me.statistics})

    def settled(self, touched: Touched) -> None:
        """The sequence it heads is in order again: the next turn."""
        done, *rest = self.now.turns
        self.set(turns=tuple(rest))
        finished = Finished(self.now.stream, touched)
        if done.changed.stream == self.now.stream:
            self.finished(finished)
        else:
            self.send(done.changed.stream, finished)
        if rest:
            self.grant()

    def finished(self, message: Finished) -> None:
        left = self.now.unfinished - {message.head}
        self.set(unfinished=left, touched=self.now.touched | message.touched)
        if left:
            return
        sites = tuple(dict.fromkeys(s for s in self.now.homes.values() if s in self.now.touched))
        for site in sites:
            one = next(stream for stream, home in self.now.homes.items() if home == site)
            if site != self.now.me.site:
                self.send(one, Affected(sites))

    # --- who comes next --------------------------------------------------------------------------

    def scan(self, message: Scan) -> None:
        head, seat = message.head, self.now.seats[message.head]
        changed = message.changed
        if changed.stream == self.now.stream:
            # It beats nobody before it.
            self.adopt(head)
            if message.direction == "earlier":
                self.settle(head, NOBODY)
            else:
                self.choose(head, NOBODY)
            return
        theirs = one_way(seat.prefix, changed, self.now.prices).least
        if self.better(theirs, changed.stream, self.cost(head, seat.prefix), self.now.stream):
            self.send(changed.stream, SwapWith(head, self.now.stream, True, NOBODY))
        else:
            assert seat.after is not None, "the changed stream comes later"
            self.send(seat.after, message)

    def choose(self, head: str, touched: Touched) -> None:
        """Find the cheapest stream for its place: itself, or one that comes later."""
        seat, me = self.now.seats[head], self.now.stream
        if seat.after is None:
            self.settle(head, touched)
            return
        cost = self.cost(head, seat.prefix)
        self.send(seat.after, Relay(head, me, seat.prefix, me, cost, touched))

    def relay(self, message: Relay) -> None:
        head, me = message.head, self.now.stream
        cost = self.cost(head, message.prefix)
        if self.better(cost, me, message.cost, message.best):
            message = replace(message, best=me, cost=cost)
        after = self.now.seats[head].after
        if after is not None:
            self.send(after, message)
        elif message.best == message.place:
            self.send(message.place, Stay(head, message.touched))
        else:
            swap = SwapWith(head, message.place, False, message.touched)
            if message.best == me:
                self.swap_with(swap)
            else:
                self.send(message.best, swap)

    def arrive(self, message: Continue) -> None:
        seat = replace(self.now.seats[message.head], before=message.before, prefix=message.prefix)
        self.sit(message.head, seat)
        self.choose(message.head, message.touched)

    # --- swaps -----------------------------------------------------------------------------------

    def swap_with(self, message: SwapWith) -> None:
        """It is the cheapest in the place of another stream: offer its own for it."""
        head, seat = message.head, self.now.seats[message.head]
        if message.own_turn:
            self.adopt(head)
        self.send(message.place, Trade(head, seat, message.touched))

    def trade(self, sender: str, message: Trade) -> None:
        """Give its place to the sender and take the sender's."""
        head, me = message.head, self.now.stream
        mine, theirs = self.now.seats[head], message.seat
        before = sender if theirs.before == me else theirs.before
        self.sit(head, replace(theirs, before=before))
        answer = Traded(head, mine, message.touched)
        notes = self.tell_neighbours(head, sender)
        self.wait(head, Waiting(notes, "answer trade", message.touched, answer, sender))

    def traded(self, sender: str, message: Traded) -> None:
        """Take the place that it was offered, and tell its neighbours there."""
        head, me = message.head, self.now.stream
        theirs = message.seat
        after = sender if theirs.after == me else theirs.after
        self.sit(head, replace(theirs, after=after))
        notes = self.tell_neighbours(head, sender)
        self.wait(head, Waiting(notes, "settle", message.touched))

    def tell_neighbours(self, head: str, but: str) -> int:
        """Tell the streams before and after it that it is there; how many were told."""
        seat, me, notes = self.now.seats[head], self.now.stream, 0
        if seat.before != but:
            self.send(seat.before, NewNeighbour(head, "after", me))
            notes += 1
        if seat.after is not None and seat.after != but:
            self.send(seat.after, NewNeighbour(head, "before", me))
            notes += 1
        return notes

    def beside(self, sender: str, message: NewNeighbour) -> None:
        head = message.head
        if head == self.now.stream:
            self.set(first=message.stream)
        elif message.side == "after":
            self.sit(head, replace(self.now.seats[head], after=message.stream))
        else:
            self.sit(head, replace(self.now.seats[head], before=message.stream))
        self.send(sender, Noted(head, message.side))

    # --- placements ------------------------------------------------------------------------------

    def settle(self, head: str, touched: Touched) -> None:
        """Choose the placement of its join, and tell the site that its tuples come from."""
        seat, me = self.now.seats[head], self.now.me
        placement = one_way(seat.prefix, self.candidate(head), self.now.prices).placement
        self.sit(head, replace(seat, placement=placement))
        old, new = self.now.joins[head], _join(me, self.now.seats[head])
        notes = 0
        if old != new:
            self.set(joins={**self.now.joins, head: new})
            self.send(new.host, Host(head, new.step, new.last))
            notes = 1
            if old.host != new.host:
                self.send(old.host, Unhost(head, me.stream))
                notes = 2
            touched |= {me.site, self.now.homes[old.host], self.now.homes[new.host]}
        self.wait(head, Waiting(notes, "pass on", touched))

    def host(self, sender: str, message: Host) -> None:
        part = HostedJoin(message.step, message.last, self.now.stream)
        self.set(guests={**self.now.guests, (message.head, message.step.stream): part})
        self.send(sender, Noted(message.head, "host"))

    def unhost(self, sender: str, message: Unhost) -> None:
        gone = (message.head, message.stream)
        self.set(guests={key: part for key, part in self.now.guests.items() if key != gone})
        self.send(sender, Noted(message.head, "unhost"))

    # --- going on --------------------------------------------------------------------------------

    def wait(self, head: str, waiting: Waiting) -> None:
        if waiting.notes:
            self.set(waiting={**self.now.waiting, head: waiting})
        else:
            self.go_on(head, waiting)

    def noted(self, head: str) -> None:
        waiting = self.now.waiting[head]
        left = {h: w for h, w in self.now.waiting.items() if h != head}
        self.set(waiting=left)
        self.wait(head, replace(waiting, notes=waiting.notes - 1))

    def go_on(self, head: str, waiting: Waiting) -> None:
        if waiting.then == "answer trade":
            assert waiting.trade is not None
            self.send(waiting.to, waiting.trade)
        elif waiting.then == "settle":
            self.settle(head, waiting.touched)
        else:
            seat, me = self.now.seats[head], self.candidate(head)
            if seat.after is None:
                self.send(head, SequenceSettled(head, waiting.touched))
                return
            prefix = joined(seat.prefix, me, seat.placement)
            self.send(seat.after, Continue(head, me.stream, prefix, waiting.touched))

"""Every state that a world of moving groups can reach (`moving_world`), and what must hold there.

*What is checked.* No result appears that the definition does not have, or appears twice. No row
comes to a processor that does not hold its group, or has deleted it. Where
nothing is left to happen, every result has appeared, the manager is idle, and all parties agree
where the groups are. From every state such an end can be reached: no move is stuck, as long as the
manager repeats itself. Every party is the same after it was written and read as plain data.

*How.* Breadth first over all interleavings, so that the way to an error is a shortest one. A state
is a tuple of small numbers: each distinct party, channel and network has one, and what a party does
with an input is computed once. The manager may repeat itself when no message or row is under way,
and otherwise within the budget; a network with equal messages is one with a single one, which loses
nothing as long as the budget lets messages be repeated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import astuple, dataclass
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar

from plait.errors import MoveError
from plait_lab.laws.exploring.moving_world import (
    END,
    Beat,
    Done,
    FaultBudget,
    Gate,
    Item,
    Machine,
    Result,
    Scenario,
    Violation,
    Wish,
    answer,
    send_row,
    start,
    survives,
    take_item,
    tell_processor,
    tell_split,
)
from plait_lab.protocol.messages import MANAGER, Message, processor_name, split_name
from plait_lab.protocol.move_manager import MoveManager
from plait_lab.protocol.parties import ProcessorParty

T = TypeVar("T", bound=Hashable)

Network = frozenset[tuple[str, int]]
State = tuple[int, tuple[int, ...], tuple[int, ...], int, int, int, int, tuple[int, ...]]
"""Manager, splits, processors, channels, network, results, wishes fulfilled, budget left."""


Label = Callable[[], str]
"""What happened; only the way to a violation is written out."""


@dataclass(frozen=True, slots=True)
class Exploration:
    """What was seen."""

    states: int
    ends: int
    """States in which nothing is left to happen."""
    violation: str = ""
    trace: tuple[str, ...] = ()
    """The way to the violation."""
    moved: int = 0
    """Ends at which the groups are not where they were at the start."""


class _Numbers(Generic[T]):
    """A number for each distinct value."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[T, int] = {}

    def of(self, value: T) -> int:
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


class _World:
    """The states of a scenario, and the steps between them."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.expected = answer(scenario)
        self.parties: _Numbers[Machine | Gate | MoveManager] = _Numbers()
        self.messages: _Numbers[Message] = _Numbers()
        self.items: _Numbers[Item] = _Numbers()
        self.channels: _Numbers[tuple[tuple[int, ...], ...]] = _Numbers()
        self.networks: _Numbers[Network] = _Numbers()
        self.results: _Numbers[frozenset[Result]] = _Numbers()
        self.done: dict[Hashable, tuple[int, Done, tuple[tuple[str, int], ...]]] = {}
        self.width = scenario.processors

    def start(self) -> State:
        manager, gates, machines = start(self.scenario)
        empty = ((),) * (len(gates) * self.width)
        return (
            self._party(manager),
            tuple(self._party(g) for g in gates),
            tuple(self._party(m) for m in machines),
            self.channels.of(empty),
            self.networks.of(frozenset()),
            self.results.of(frozenset()),
            0,
            astuple(self.scenario.budget),
        )

    def _party(self, party: Machine | Gate | MoveManager) -> int:
        known = len(self.parties.values)
        number = self.parties.of(party)
        if number == known and not survives(party):
            raise Violation(f"not the same when it is read again: {party}")
        return number

    def _does(
        self, key: Hashable, act: Callable[[], Done]
    ) -> tuple[int, Done, tuple[tuple[str, int], ...]]:
        """What a party does, computed once."""
        if key not in self.done:
            done = act()
            sent = tuple((to, self.messages.of(message)) for to, message in done.sent)
            self.done[key] = (self._party(done.party), done, sent)
        return self.done[key]

    def steps(self, state: State) -> Iterator[tuple[Label, State]]:
        """What can happen next: all of it, or what the rest may as well wait for.

        An answer that the manager has got may be taken before anything else, if nothing but the
        answer's loss can interfere: others do not see the manager, and its messages can wait. When
        no move is to come, rows are all that is left, and their order does not matter.
        """
        left = FaultBudget(*state[7])
        if not (left.crashes or left.ticks or left.give_ups or self.scenario.together):
            answers = sorted(e for e in self.networks.values[state[4]] if e[0] == MANAGER)
            if answers:
                yield from self._envelope(state, answers[0])
                return
        manager = self.parties.values[state[0]]
        assert isinstance(manager, MoveManager)
        if manager.idle and state[4] == 0 and state[6] == len(self.scenario.wishes):
            yield from islice(self._rows(state), 1)
            return
        yield from self._rows(state)
        for envelope in sorted(self.networks.values[state[4]]):
            yield from self._envelope(state, envelope)
        yield from self._manager(state)

    def _rows(self, state: State) -> Iterator[tuple[Label, State]]:
        scenario = self.scenario
        for s, number in enumerate(state[1]):
            gate = self.parties.values[number]
            assert isinstance(gate, Gate)
            if gate.position < len(scenario.histories[s]) and not self._full(state, s):
                done = self._does(("row", number), partial(send_row, scenario, gate))
                yield f"split {s} sends a row".__str__, self._after(state, split_name(s), done)
        channels = self.channels.values[state[3]]
        for i, channel in enumerate(channels):
            taken = self._next(channel)
            if not taken:
                continue
            s, p = divmod(i, self.width)
            rest = (*channels[:i], channel[len(taken) :], *channels[i + 1 :])
            after = (*state[:3], self.channels.of(rest), *state[4:])
            for item in taken:
                number = after[2][p]
                machine = self.parties.values[number]
                assert isinstance(machine, Machine)
                act = partial(take_item, scenario, machine, s, self.items.values[item])
                done = self._does(("item", number, s, item), act)
                after = self._after(after, processor_name(p), done)
            yield partial(self._told, f"processor {p} takes", self.items, taken), after

    def _next(self, channel: tuple[int, ...]) -> tuple[int, ...]:
        """What a processor takes at once: an item, with the beats around it.

        Between two other items a beat could only be taken later or earlier, which purges later or
        earlier. So a beat alone is taken only at the end of a history.
        """
        for i, number in enumerate(channel):
            item = self.items.values[number]
            if not isinstance(item, Beat):
                behind = channel[i + 1 : i + 2]
                beat = behind and isinstance(self.items.values[behind[0]], Beat)
                return channel[: i + 2] if beat else channel[: i + 1]
            if item.ts == END:
                return channel[: i + 1]
        return ()

    def _full(self, state: State, split: int) -> bool:
        """Whether a split has to wait, because a processor is too far behind."""
        queues = self.channels.values[state[3]][split * self.width : (split + 1) * self.width]
        return max(map(self._waiting, queues)) > self.scenario.lag

    def _waiting(self, channel: tuple[int, ...]) -> int:
        return sum(not isinstance(self.items.values[item], Beat) for item in channel)

    def _envelope(self, state: State, envelope: tuple[str, int]) -> Iterator[tuple[Label, State]]:
        """What can happen to one message."""
        left = FaultBudget(*state[7])
        network = self.networks.values[state[4]]
        to, number = envelope
        told = partial(self._told, f"{to} gets", self.messages, (number,))
        lost = self._with_network(state, network - {envelope})
        done = self._tell(state, to, number)
        yield told, self._after(lost, to, done)
        if left.losses:
            yield partial(_prefixed, "lost:", told), _spent(lost, 0)
        if left.repeats:
            twice = self._after(state, to, done)
            yield partial(_prefixed, "first of two:", told), _spent(twice, 1)
        if left.crashes:
            inbox = frozenset(e for e in network if e[0] == to)
            dead = self._with_network(state, network - inbox)
            yield f"crash of {to}".__str__, _spent(dead, 2)
            after = self._after(dead, to, done, sends=False)
            yield partial(_prefixed, "the last before a crash:", told), _spent(after, 2)

    def _tell(
        self, state: State, to: str, number: int
    ) -> tuple[int, Done, tuple[tuple[str, int], ...]]:
        """A party gets a message."""
        message = self.messages.values[number]
        party_number = self._number_of(state, to)
        party = self.parties.values[party_number]

        def act() -> Done:
            match party:
                case MoveManager():
                    reaction = self.scenario.rules.to_manager(party, message)
                    return Done(reaction.party, sent=reaction.messages)
                case Gate():
                    return tell_split(self.scenario, party, message)
                case Machine():
                    return tell_processor(self.scenario, party, message)

        return self._does(("message", party_number, number), act)

    def _manager(self, state: State) -> Iterator[tuple[Label, State]]:
        manager = self.parties.values[state[0]]
        assert isinstance(manager, MoveManager)
        left = FaultBudget(*state[7])
        if state[6] < len(self.scenario.wishes) and (manager.idle or self.scenario.together):
            wish = self.scenario.wishes[state[6]]
            fulfilled = (*state[:6], state[6] + 1, state[7])
            try:
                begun = _begin(manager, wish)
            except MoveError as refused:
                if manager.idle:
                    yield f"{wish} is refused: {refused}".__str__, fulfilled
            else:
                yield wish.__repr__, self._managed(fulfilled, begun)
        if manager.idle:
            return
        quiet = state[4] == 0 and not any(map(self._next, self.channels.values[state[3]]))
        if quiet or left.ticks:
            ticked = self._managed(state, Done(manager, sent=manager.tick().messages))
            yield "tick".__str__, ticked if quiet else _spent(ticked, 3)
        if left.give_ups:
            for moving in manager.moving:
                try:
                    reaction = manager.give_up(moving.move.number)
                except MoveError:
                    continue
                given_up = Done(reaction.party, sent=reaction.messages)
                yield (
                    f"move {moving.move.number} is given up at {moving.step}".__str__,
                    _spent(self._managed(state, given_up), 4),
                )

    def _managed(self, state: State, done: Done) -> State:
        sent = tuple((to, self.messages.of(message)) for to, message in done.sent)
        return self._after(state, MANAGER, (self._party(done.party), done, sent))

    def _after(
        self,
        state: State,
        name: str,
        did: tuple[int, Done, tuple[tuple[str, int], ...]],
        *,
        sends: bool = True,
    ) -> State:
        """The state after one party did something."""
        number, done, sent = did
        manager, gates, machines, channels, network, results, wishes, left = state
        kind, _, index = name.partition("-")
        if kind == MANAGER:
            manager = number
        elif kind == "split":
            gates = _replaced(gates, int(index), number)
        else:
            machines = _replaced(machines, int(index), number)
        if done.items:
            channels = self._extended(channels, int(index), done.items)
        if sent and sends:
            network = self.networks.of(self.networks.values[network] | set(sent))
        if done.results:
            results = self._reported(results, done.results)
        return (manager, gates, machines, channels, network, results, wishes, left)

    def _extended(self, channels: int, split: int, items: tuple[tuple[int, Item], ...]) -> int:
        queues = list(self.channels.values[channels])
        for processor, item in items:
            i = split * self.width + processor
            queue = queues[i]
            if isinstance(item, Beat) and queue:
                queue = queue[:-1] if isinstance(self.items.values[queue[-1]], Beat) else queue
            queues[i] = (*queue, self.items.of(item))
        return self.channels.of(tuple(queues))

    def _reported(self, results: int, new: tuple[Result, ...]) -> int:
        seen = self.results.values[results]
        for result in new:
            if result in seen:
                raise Violation(f"result {result} twice")
            if result not in self.expected:
                raise Violation(f"result {result} is none")
            seen |= {result}
        return self.results.of(seen)

    def _told(self, what: str, numbers: _Numbers[Any], those: tuple[int, ...]) -> str:
        return f"{what} {', '.join(str(numbers.values[number]) for number in those)}"

    def _with_network(self, state: State, network: Network) -> State:
        return (*state[:4], self.networks.of(network), *state[5:])

    def _number_of(self, state: State, name: str) -> int:
        kind, _, index = name.partition("-")
        if kind == MANAGER:
            return state[0]
        return (state[1] if kind == "split" else state[2])[int(index)]

    def is_end(self, state: State) -> bool:
        """Whether nothing is left to happen: no row, no message, no wish, no open move."""
        manager = self.parties.values[state[0]]
        gates = [self.parties.values[n] for n in state[1]]
        return (
            isinstance(manager, MoveManager)
            and manager.idle
            and state[6] == len(self.scenario.wishes)
            and state[4] == 0
            and not any(map(self._next, self.channels.values[state[3]]))
            and all(
                isinstance(gate, Gate) and gate.position == len(self.scenario.histories[s])
                for s, gate in enumerate(gates)
            )
        )

    def has_moved(self, state: State) -> bool:
        """Whether some group is not where it was at the start."""
        manager = self.parties.values[state[0]]
        assert isinstance(manager, MoveManager)
        return any(
            (now.processors, now.spread) != (then.processors, then.spread)
            for now, then in zip(manager.places, self.scenario.places, strict=True)
        )

    def check_end(self, state: State) -> None:
        """What must hold when nothing is left to happen."""
        if missing := self.expected - self.results.values[state[5]]:
            raise Violation(f"results {sorted(missing)} are missing")
        manager = self.parties.values[state[0]]
        assert isinstance(manager, MoveManager)
        for number in (*state[1], *state[2]):
            party = self.parties.values[number]
            match party:
                case Gate(split=split):
                    if split.places != manager.places or split.open or party.buffered:
                        raise Violation(f"{split.name} disagrees: {party}")
                case Machine(processor=processor):
                    ideal = ProcessorParty.of(processor.number, processor.splits, manager.places)
                    if processor.held != ideal.held or processor.open:
                        raise Violation(f"{processor.name} disagrees: {processor}")


def explore(scenario: Scenario, most: int = 2_000_000) -> Exploration:
    """All states of a scenario, up to the first violation.

    >>> from plait.groups.moves.places import Place
    >>> from plait_lab.laws.exploring.moving_world import Row
    >>> history = (Row(0, 0, 0, 1), Row(1, 1, 0, 2))
    >>> wish = Wish("MSLB", (0,), (1,))
    >>> explore(Scenario(2, 1, (history,), (Place((0,)),), 2, (wish,))).violation
    ''
    """
    world = _World(scenario)
    first = world.start()
    numbers = {first: 0}
    states = [first]
    came: list[tuple[int, Label]] = [(0, str)]
    before: list[list[int]] = [[]]
    ends: list[int] = []
    queue = deque([0])

    def report(violation: str, at: int) -> Exploration:
        trace = []
        while at:
            at, label = came[at]
            trace.append(label())
        moved = sum(world.has_moved(states[end]) for end in ends)
        return Exploration(len(states), len(ends), violation, tuple(reversed(trace)), moved)

    while queue:
        at = queue.popleft()
        state = states[at]
        try:
            if world.is_end(state):
                ends.append(at)
                world.check_end(state)
            for label, after in world.steps(state):
                number = numbers.setdefault(after, len(states))
                if number == len(states):
                    states.append(after)
                    came.append((at, label))
                    before.append([])
                    queue.append(number)
                before[number].append(at)
        except Violation as violation:
            return report(f"next: {violation}", at)
        if len(states) > most:
            return report(f"more than {most} states: make the scenario smaller", at)
    stuck = _without_way(before, ends)
    if stuck is not None:
        return report("no end can be reached", stuck)
    return report("", 0)


def _without_way(before: list[list[int]], ends: list[int]) -> int | None:
    """The first state from which no end can be reached."""
    reached = bytearray(len(before))
    stack = list(ends)
    for end in ends:
        reached[end] = 1
    while stack:
        for at in before[stack.pop()]:
            if not reached[at]:
                reached[at] = 1
                stack.append(at)
    found = reached.find(0)
    return None if found < 0 else found


def _begin(manager: MoveManager, wish: Wish) -> Done:
    if wish.ask:
        (sender,) = manager.places[wish.groups[0]].processors
        reaction = manager.ask(wish.protocol, sender, wish.receivers[0], 1.0)
    else:
        reaction = manager.begin(wish.protocol, wish.groups, wish.receivers, wish.spread)
    return Done(reaction.party, sent=reaction.messages)


def _replaced(numbers: tuple[int, ...], index: int, number: int) -> tuple[int, ...]:
    return (*numbers[:index], number, *numbers[index + 1 :])


def _prefixed(prefix: str, label: Label) -> str:
    return f"{prefix} {label()}"


def _spent(state: State, which: int) -> State:
    """With one less of a budget."""
    left = state[7]
    return (*state[:7], _replaced(left, which, left[which] - 1))

"""Decide which groups go where: rules from a snapshot of the cluster to a decision with reasons.

In this order:

1. More or fewer processors are to take part: they join in or leave, and nothing else happens in
   this snapshot. A processor that joined in has no load, so the rules below fill it.
2. A processor that has left gives all its groups away, to those with the least load.
3. A processor has more state than its memory allows: groups go to those with the least, at once.
4. A processor is above the mean by the margin, in so many snapshots in a row. If one of its groups
   alone is above it, moving cannot help: the group is spread (`plait.groups.balance.spread`).
   Otherwise groups go to the processors with the least load. What staying has cost must be as much
   as the moves are predicted to cost. 5. A spread group has become cool: it is put together again.

*The amount* is the smaller of what the sender has above the mean and what the receiver has below
it. Half of the gap between the two, which is the same for two processors, would fill the receiver
above the mean, and the same groups would move twice. It is never more than half of the gap, so a
pair does not swap roles, and no processor gets more load than the slowest had. Where no group is
as small as the amount, the smallest is moved, within the same bound: among many processors that
have almost the mean, none lacks a whole group.

*Per processor.* Every processor is compared with the mean of the same snapshot and judged by
itself. So one that is overloaded among a thousand is seen, and slow drift is seen as well: nothing
is compared with the snapshot before.

*Ties* go to the processor, or group, with the smaller number.

*Cost.* One pass over the groups, sorting the processors, and the groups of those that are
overloaded: n log n for n processors and groups.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

from plait.figures import duration
from plait.groups.balance.cluster import ClusterSnapshot, GroupSnapshot
from plait.groups.balance.hot_groups import merge_cooled, spread_hottest
from plait.groups.balance.proposal import (
    BalanceContext,
    BalanceProposal,
    BalanceSetting,
    Overload,
    several,
)
from plait.groups.balance.relocation import BalanceDecision, groups_to_move
from plait.groups.balance.scaling import drain, scale


def rebalance(
    setting: BalanceSetting, snapshot: ClusterSnapshot, context: BalanceContext
) -> BalanceDecision:
    """Stay, move or spread groups, or let processors join in or leave.

    >>> from plait.groups.balance.cluster import GroupSnapshot, ClusterSnapshot, ProcessorSnapshot
    >>> processors = tuple(ProcessorSnapshot(p, matches=0) for p in range(2))
    >>> snapshot = ClusterSnapshot(20.0, 10.0, processors, tuple(
    ...     GroupSnapshot(g, (0,), (50, 50), (50, 50), nbytes=1e4, work=2.0) for g in range(4)))
    >>> context = BalanceContext({0: 0.8, 1: 0.0}, {0: Overload(1, 10.0)})
    >>> decision = rebalance(BalanceSetting(window=10.0), snapshot, context)
    >>> decision.kind, decision.moves[0].groups, decision.moves[0].receivers
    ('move', (0, 1), (1,))
    """
    proposal = BalanceProposal(setting, snapshot, context)
    if (change := scale(proposal)) is not None:
        return change
    drain(proposal)
    _short_of_memory(proposal)
    _overloaded(proposal)
    merge_cooled(proposal)
    return proposal.decision()


class _Takers:
    """Processors that take groups, the one with the least first; what was taken can be undone."""

    def __init__(self, levels: Mapping[int, float]) -> None:
        self.levels = dict(levels)
        self._heap = [(level, p) for p, level in self.levels.items()]
        heapq.heapify(self._heap)
        self._changed: dict[int, float] = {}
        self._skipped: dict[int, float] = {}

    def least(self) -> tuple[float, int] | None:
        """The level and number of the one with the least."""
        while self._heap and self.levels.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0] if self._heap else None

    def take(self, processor: int, amount: float) -> None:
        """One takes so much."""
        self._changed.setdefault(processor, self.levels[processor])
        self.levels[processor] += amount
        heapq.heappush(self._heap, (self.levels[processor], processor))

    def drop(self, processors: Iterable[int]) -> None:
        """These take nothing more."""
        for processor in processors:
            if processor in self.levels:
                self._changed.setdefault(processor, self.levels.pop(processor))

    def skip(self, processor: int) -> None:
        """This one takes nothing more until `done`."""
        self._skipped[processor] = self.levels.pop(processor)

    def done(self, *, undo: bool = False) -> None:
        """What was taken since the last time holds, or is undone."""
        for processor, level in self._skipped.items():
            self.levels[processor] = level
            heapq.heappush(self._heap, (level, processor))
        self._skipped = {}
        for processor, level in self._changed.items() if undo else ():
            self.levels[processor] = level
            heapq.heappush(self._heap, (level, processor))
        self._changed = {}


def _filled(
    proposal: BalanceProposal,
    sender: int,
    level: float,
    weights: Mapping[int, float | None],
    aim: float,
    takers: _Takers,
) -> dict[int, list[GroupSnapshot]]:
    """Groups for those with the least, until the sender or all of them are at the aim."""
    groups = {g.group: g for g in proposal.movable(sender)}
    free, given = dict(weights), dict[int, list[GroupSnapshot]]()
    while level > aim and free and (found := takers.least()) is not None:
        least, receiver = found
        if least >= aim or (len(given) >= proposal.left and receiver not in given):
            break
        amount, most = min(level - aim, aim - least), (level - least) / 2
        room = proposal.room_of(receiver) - sum(g.nbytes or 0.0 for g in given.get(receiver, []))
        small_enough = {g: w for g, w in free.items() if _fits(proposal, groups[g], room)}
        chosen = groups_to_move(list(small_enough.items()), amount, most)
        if not chosen:
            # One group may be more than the receiver lacks, and still less than hurts.
            small = min(((w, g) for g, w in small_enough.items() if w), default=None)
            chosen = () if small is None or small[0] > most else (small[1],)
        if not chosen and len(small_enough) == len(free):
            # Where the one with the least can take none, nobody can.
            break
        if not chosen:
            takers.skip(receiver)
            continue
        fitting = _fitting(proposal, room, [groups[g] for g in chosen])
        moved = sum(free.pop(g.group) or 0.0 for g in fitting)
        level -= moved
        takers.take(receiver, moved)
        given.setdefault(receiver, []).extend(fitting)
    return given


def _fits(proposal: BalanceProposal, group: GroupSnapshot, room: float) -> bool:
    """Whether a group fits into so many bytes; if its size is unknown, it does not."""
    return proposal.policy.memory is None or (group.nbytes is not None and group.nbytes <= room)


def _fitting(
    proposal: BalanceProposal, room: float, chosen: list[GroupSnapshot]
) -> list[GroupSnapshot]:
    """As many of the chosen groups as there is memory for."""
    fitting = []
    for group in chosen:
        if _fits(proposal, group, room):
            fitting.append(group)
            room -= group.nbytes or 0.0
    return fitting


# -- memory


def _short_of_memory(proposal: BalanceProposal) -> None:
    """A processor with more state than it may have gives some away at once."""
    limit = proposal.policy.memory
    if limit is None or not proposal.setting.movable:
        return
    mean = proposal.mean(proposal.nbytes)
    over = [p for p in proposal.active if proposal.nbytes.get(p, 0.0) > limit]
    if not over:
        return
    aim = min(mean, proposal.room)
    takers = _Takers({p: n for p in proposal.active if (n := proposal.nbytes.get(p, aim)) < aim})
    for sender in sorted(over, key=lambda p: (-proposal.nbytes[p], p)):
        held = proposal.nbytes[sender]
        said = f"processor {sender} holds {held:,.0f} bytes of state, more than {limit:,.0f}"
        weights = {g.group: g.nbytes for g in proposal.movable(sender)}
        given = _filled(proposal, sender, held, weights, aim, takers)
        takers.done()
        for receiver, groups in sorted(given.items()):
            proposal.accept(proposal.move(sender, receiver, groups, short=True))
        to = f"groups go to {several(sorted(given))}" if given else "nobody can take a group"
        proposal.reasons.append(f"{said}; {to}")


# -- work


def _overloaded(proposal: BalanceProposal) -> None:
    """Processors above the margin give groups away, or spread one that is too hot."""
    policy, measure = proposal.policy, proposal.measure
    known = [p for p in proposal.active if p in measure]
    mean = proposal.mean(measure)
    if len(known) < len(proposal.active):
        many = len(proposal.active) - len(known)
        proposal.reasons.append(f"of {many} processors it is not known what they take")
    if len(known) < 2 or mean <= 0:
        few = "there are not two processors to compare"
        proposal.reasons.append(few if len(known) < 2 else "there is no load")
        return
    least = policy.least if policy.by == "work" else policy.least_bytes
    above = [p for p in known if measure[p] - mean > max(policy.margin * mean, least)]
    proposal.above = tuple(sorted(above))
    top = max(known, key=lambda p: (measure[p], -p))
    if not above:
        proposal.reasons.append(
            f"processor {top} has the most, {_shown(proposal, top, mean)}: within the margin of "
            f"{policy.margin:.0%}"
        )
        return
    if not proposal.setting.movable:
        proposal.reasons.append(
            f"processor {top} has {_shown(proposal, top, mean)}, but the routing of this query "
            "has no groups that could move"
        )
        return
    takers = _Takers(
        {
            p: level
            for p in proposal.receivers()
            if (level := measure.get(p, mean)) < mean and p not in proposal.involved
        }
    )
    for sender in sorted(above, key=lambda p: (-measure[p], p)):
        if sender in proposal.involved:
            continue
        said = f"processor {sender} has {_shown(proposal, sender, mean)}"
        past = proposal.context.overloaded.get(sender, Overload())
        if (why := proposal.hindrance(sender, "from")) is not None:
            proposal.reasons.append(f"{said}; {why}")
        elif past.snapshots + 1 < policy.confirm:
            proposal.reasons.append(
                f"{said}; to be confirmed by {policy.confirm} snapshots in a row"
            )
        elif proposal.left <= 0:
            proposal.reasons.append(
                f"{said}; {policy.moves} moves are under way, which is the limit"
            )
            break
        else:
            waited = past.seconds + proposal.snapshot.span
            many = len(proposal.moves)
            hot = policy.by == "work" and spread_hottest(proposal, sender, mean, waited, said)
            if len(proposal.moves) > many:
                takers.drop(proposal.moves[-1].receivers)
                takers.done()
            if not hot:
                _relieve(proposal, sender, mean, waited, said, takers)


def _relieve(
    proposal: BalanceProposal, sender: int, mean: float, waited: float, said: str, takers: _Takers
) -> None:
    """The sender gives groups to those with the least, if that is worth it."""
    policy, level = proposal.policy, proposal.measure[sender]
    weights = {g.group: proposal.weight(sender, g) for g in proposal.movable(sender)}
    given = _filled(proposal, sender, level, weights, mean, takers)
    if not given:
        takers.done(undo=True)
        proposal.reasons.append(f"{said}; {_why_none(proposal, level, mean, weights, takers)}")
        return
    moves = [proposal.move(sender, r, groups) for r, groups in sorted(given.items())]
    relief = sum(weights[g] or 0.0 for move in moves for g in move.groups)
    cost, why = policy.payback * sum(m.forecast.work for m in moves), ""
    if policy.by == "work" and relief * waited < cost:
        so_far, moving = duration(relief * waited), duration(cost)
        why = f"staying has cost {so_far} so far, the moves would take {moving}"
    if relief < (policy.least if policy.by == "work" else policy.least_bytes):
        why = f"moving groups would relieve it of {relief:.3g} only"
    takers.done(undo=bool(why))
    if why:
        proposal.undone(sender)
        proposal.reasons.append(f"{said}; {why}")
        return
    for move in moves:
        proposal.accept(move)
    many, to = sum(len(m.groups) for m in moves), several(sorted(given))
    proposal.reasons.append(f"{said}; {many} of its groups, {relief:.3g} together, go to {to}")


def _why_none(
    proposal: BalanceProposal,
    level: float,
    mean: float,
    weights: Mapping[int, float | None],
    takers: _Takers,
) -> str:
    """Why a processor above the margin keeps its groups."""
    known = {g: w for g, w in weights.items() if w}
    if not known:
        unknown = any(w is None for w in weights.values())
        return "nothing is known of its groups" if unknown else "it has no group to give"
    if (found := takers.least()) is None:
        return "no processor is free to take groups now"
    if found[0] >= mean:
        return "no processor has less than the mean now"
    smallest, most = min(known.values()), (level - found[0]) / 2
    if smallest <= most:
        return "no processor has memory for one of its groups"
    largest = max(known, key=lambda g: (known[g], -g))
    if largest not in proposal.stuck:
        proposal.stuck.append(largest)
    return (
        f"cannot be balanced by moving: its smallest group takes {smallest:.3g}, and more than "
        f"{most:.3g} would only overload another"
    )


def _shown(proposal: BalanceProposal, processor: int, mean: float) -> str:
    if proposal.policy.by == "memory":
        return f"{proposal.nbytes[processor]:,.0f} bytes, the mean is {mean:,.0f}"
    return f"a load of {proposal.loads[processor]:.3g}, the mean is {mean:.3g}"

"""Spread groups that are too hot for one processor, and merge them when they have cooled.

A group is hot if it alone is above the mean by the margin: wherever it goes, that processor is
overloaded. It is cool if, as a whole, it is below the policy's share of the mean; between the two
it stays as it is.
"""

from __future__ import annotations

from plait.figures import duration
from plait.groups.balance.cluster import GroupSnapshot, Work
from plait.groups.balance.proposal import BalanceProposal, several
from plait.groups.balance.spread import best_spread, whole_work


def spread_hottest(
    proposal: BalanceProposal, sender: int, mean: float, waited: float, said: str
) -> bool:
    """Spread the hottest group of a processor if it alone is above the margin.

    False means that nothing speaks against moving other groups instead.
    """
    policy, works = proposal.policy, proposal.work(sender)
    hot = [
        (w.total, -g.group, g, w)
        for g in proposal.held[sender]
        if (w := works[g.group]) is not None and not g.moving and g.group not in proposal.taken
    ]
    if not hot or (top := max(hot, key=lambda f: f[:2]))[0] <= (1 + policy.margin) * mean:
        return False
    load, _, group, work = top
    said = f"{said}; group {group.group} alone takes {load:.3g}, so moving it cannot help"
    if not policy.spread:
        return _stuck(proposal, group, f"{said}, and it may not be spread")
    others = [h for h in group.holders if h != sender]
    if any(h not in proposal.loads or proposal.hindrance(h, "from") for h in others):
        proposal.reasons.append(f"{said}; another of its holders is left alone for now")
        return True
    whole = work if len(group.holders) == 1 else whole_work(group, work)
    if whole is None or group.arrived is None or group.stored is None:
        return _stuck(proposal, group, f"{said}, and the rows of its streams are not known")
    allowed = [
        p for p in proposal.receivers() if p in proposal.loads and p not in proposal.involved
    ]
    allowed = [p for p in {sender, *allowed} if proposal.has_room_for(p, group)]
    apart = dict(proposal.loads)
    for holder in group.holders:
        apart[holder] = max(0.0, apart.get(holder, 0.0) - load)
    found = best_spread(group, whole, apart, allowed, policy.margin * mean)
    if found is None:
        return _stuck(proposal, group, f"{said}, and there are no processors to spread it over")
    gain = max(proposal.loads.get(h, 0.0) for h in group.holders) - found.slowest
    over = several(found.processors)
    if gain < policy.margin * mean or gain < policy.least:
        why = f"spread over {over} it would leave the slowest with {found.slowest:.3g}"
        return _stuck(proposal, group, f"{said}; {why}")
    move = proposal.several_move(group, found.processors, found.stream, gain)
    if gain * waited < (needed := policy.payback * move.forecast.work):
        cost = f"staying has cost {duration(gain * waited)} so far"
        proposal.reasons.append(f"{said}; {cost}, spreading it would take {duration(needed)}")
        return True
    parts = {p: apart[p] for p in group.holders}
    parts |= {p: apart[p] + found.part.total for p in found.processors}
    proposal.accept(move, parts)
    proposal.reasons.append(
        f"{said}; the rows of stream {found.stream} are divided over {over}, the slowest then has "
        f"{found.slowest:.3g}"
    )
    return True


def _stuck(proposal: BalanceProposal, group: GroupSnapshot, why: str) -> bool:
    proposal.stuck.append(group.group)
    proposal.reasons.append(f"cannot be balanced: {why}")
    return False


def merge_cooled(proposal: BalanceProposal) -> None:
    """Put spread groups together that one processor can hold easily."""
    mean, policy = proposal.mean(proposal.loads), proposal.policy
    if not proposal.setting.movable:
        return
    for group in proposal.snapshot.groups:
        if group.spread is None or group.moving or len(group.holders) < 2:
            continue
        if proposal.left <= 0 or proposal.involved.intersection(group.holders):
            continue
        if any(h not in proposal.loads or proposal.hindrance(h, "from") for h in group.holders):
            continue
        works = [proposal.work(h)[group.group] for h in group.holders]
        parts = [w for w in works if w is not None]
        if len(parts) < len(works):
            continue
        rows, matches = (sum(column) / len(parts) for column in zip(*parts, strict=True))
        part = Work(rows, matches)
        whole = whole_work(group, part)
        if whole is None or whole.total > policy.cool * mean:
            continue
        loads = {h: max(0.0, proposal.loads[h] - part.total) for h in group.holders}
        receiver = min(group.holders, key=lambda h: (loads[h], h))
        loads[receiver] += whole.total
        if loads[receiver] > max(mean, *(proposal.loads[h] for h in group.holders)):
            continue
        proposal.accept(proposal.several_move(group, (receiver,), None, 0.0), loads)
        proposal.reasons.append(
            f"group {group.group} is spread, but would take only {whole.total:.3g} as a whole: it "
            f"is put together at processor {receiver}"
        )

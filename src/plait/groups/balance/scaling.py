"""Scale out and in: let processors join, or drain those that leave."""

from __future__ import annotations

import heapq

from plait.groups.balance.cluster import GroupSnapshot
from plait.groups.balance.proposal import BalanceProposal, several
from plait.groups.balance.relocation import BalanceDecision


def scale(proposal: BalanceProposal) -> BalanceDecision | None:
    """Let more or fewer processors take part, as the user or the load asks; else None."""
    policy, active, exist = proposal.policy, proposal.active, len(proposal.processors)
    wanted, why = policy.active, "so many were asked for"
    if wanted is None:
        proposal.pressed, why = _pressed(proposal)
        if not proposal.pressed:
            return None
        if max(proposal.context.pressed * proposal.pressed, 0) + 1 < policy.confirm:
            proposal.reasons.append(
                f"{why}; to be confirmed by {policy.confirm} snapshots in a row"
            )
            return None
        wanted = len(active) + proposal.pressed
    wanted = min(wanted, exist)
    if wanted > len(active):
        idle = sorted(p for p, found in proposal.processors.items() if not found.active)
        chosen = tuple(idle[: wanted - len(active)])
        said = f"{several(chosen)} to take part, which makes {wanted} of {exist}: {why}"
        return BalanceDecision("join", (said,), join=chosen, pressed=proposal.pressed)
    if wanted < len(active):
        # Those with the least state are the cheapest to empty; what is unknown may be much.
        order = sorted(active, key=lambda p: (proposal.nbytes.get(p, float("inf")), -p))
        chosen = tuple(sorted(order[: len(active) - wanted]))
        said = f"{several(chosen)} to leave, {wanted} of {exist} remain: {why}"
        return BalanceDecision("leave", (said,), leave=chosen, pressed=proposal.pressed)
    return None


def _pressed(proposal: BalanceProposal) -> tuple[int, str]:
    """Whether the load asks for one more (1) or one less (-1), and why."""
    policy, many = proposal.policy, len(proposal.active)
    if not many or any(p not in proposal.loads for p in proposal.active):
        return 0, ""
    mean = proposal.mean(proposal.loads)
    if policy.grow is not None and mean > policy.grow and many < len(proposal.processors):
        return 1, f"the mean load of {mean:.3g} is above {policy.grow:g}"
    if policy.shrink is not None and many > policy.least_active:
        others = mean * many / (many - 1)
        if others < policy.shrink:
            return -1, f"the others would have a mean load of {others:.3g} < {policy.shrink:g}"
    return 0, ""


def drain(proposal: BalanceProposal) -> None:
    """Processors that have left give all their groups to those with the least."""
    staying = set(proposal.active)
    gone = [p for p in sorted(proposal.processors) if p not in staying and proposal.held[p]]
    if not gone or not staying or not proposal.setting.movable:
        return
    # A processor of which nothing is known comes last.
    measure = proposal.measure
    heap = [(measure.get(p, float("inf")), 0, p) for p in proposal.active]
    heapq.heapify(heap)
    for sender in gone:
        _spread_elsewhere(proposal, sender, staying)
        weights = {g.group: proposal.weight(sender, g) or 0.0 for g in proposal.movable(sender)}
        given: dict[int, list[GroupSnapshot]] = {}
        for group in sorted(proposal.movable(sender), key=lambda g: (-weights[g.group], g.group)):
            if len(given) >= proposal.left and heap[0][2] not in given:
                break
            load, many, receiver = heapq.heappop(heap)
            given.setdefault(receiver, []).append(group)
            heapq.heappush(heap, (load + weights[group.group], many + 1, receiver))
        for receiver, groups in sorted(given.items()):
            proposal.accept(proposal.move(sender, receiver, groups))
        if given:
            proposal.reasons.append(f"processor {sender} has left and gives its groups away")


def _spread_elsewhere(proposal: BalanceProposal, sender: int, staying: set[int]) -> None:
    """Groups that are spread, also over a processor that has left, stay at the other holders."""
    for group in proposal.held[sender]:
        if (
            group.moving
            or len(group.holders) < 2
            or group.group in proposal.taken
            or proposal.left <= 0
        ):
            continue
        others = tuple(h for h in group.holders if h in staying)
        if not others:
            others = (min(staying, key=lambda p: (proposal.loads.get(p, float("inf")), p)),)
        spread = group.spread if len(others) > 1 else None
        proposal.accept(proposal.several_move(group, others, spread, 0.0))
        proposal.reasons.append(
            f"group {group.group} is also held by processor {sender}, which left"
        )

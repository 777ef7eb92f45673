"""Who takes part: processors that join in, and processors that leave and give their groups away."""

from __future__ import annotations

import heapq

from plait.groups.balance.cluster import GroupLook
from plait.groups.balance.draft import BalanceDraft, several
from plait.groups.balance.relocation import Balance


def who_takes_part(draft: BalanceDraft) -> Balance | None:
    """Let more or fewer processors take part, as the user or the load asks; else None."""
    policy, active, exist = draft.policy, draft.active, len(draft.processors)
    wanted, why = policy.active, "so many were asked for"
    if wanted is None:
        draft.pressed, why = _pressed(draft)
        if not draft.pressed:
            return None
        if max(draft.standing.pressed * draft.pressed, 0) + 1 < policy.confirm:
            draft.reasons.append(f"{why}; to be confirmed by {policy.confirm} looks in a row")
            return None
        wanted = len(active) + draft.pressed
    wanted = min(wanted, exist)
    if wanted > len(active):
        idle = sorted(p for p, found in draft.processors.items() if not found.active)
        chosen = tuple(idle[: wanted - len(active)])
        said = f"{several(chosen)} to take part, which makes {wanted} of {exist}: {why}"
        return Balance("join", (said,), join=chosen, pressed=draft.pressed)
    if wanted < len(active):
        # Those with the least state are the cheapest to empty; what is unknown may be much.
        order = sorted(active, key=lambda p: (draft.nbytes.get(p, float("inf")), -p))
        chosen = tuple(sorted(order[: len(active) - wanted]))
        said = f"{several(chosen)} to leave, {wanted} of {exist} remain: {why}"
        return Balance("leave", (said,), leave=chosen, pressed=draft.pressed)
    return None


def _pressed(draft: BalanceDraft) -> tuple[int, str]:
    """Whether the load asks for one more (1) or one less (-1), and why."""
    policy, many = draft.policy, len(draft.active)
    if not many or any(p not in draft.loads for p in draft.active):
        return 0, ""
    mean = draft.mean(draft.loads)
    if policy.grow is not None and mean > policy.grow and many < len(draft.processors):
        return 1, f"the mean load of {mean:.3g} is above {policy.grow:g}"
    if policy.shrink is not None and many > policy.least_active:
        others = mean * many / (many - 1)
        if others < policy.shrink:
            return -1, f"the others would have a mean load of {others:.3g} < {policy.shrink:g}"
    return 0, ""


def leave_behind(draft: BalanceDraft) -> None:
    """Processors that have left give all their groups to those with the least."""
    staying = set(draft.active)
    gone = [p for p in sorted(draft.processors) if p not in staying and draft.held[p]]
    if not gone or not staying or not draft.setting.movable:
        return
    # A processor of which nothing is known comes last.
    measure = draft.measure
    heap = [(measure.get(p, float("inf")), 0, p) for p in draft.active]
    heapq.heapify(heap)
    for sender in gone:
        _spread_elsewhere(draft, sender, staying)
        weights = {g.group: draft.weight(sender, g) or 0.0 for g in draft.movable(sender)}
        given: dict[int, list[GroupLook]] = {}
        for group in sorted(draft.movable(sender), key=lambda g: (-weights[g.group], g.group)):
            if len(given) >= draft.left and heap[0][2] not in given:
                break
            load, many, receiver = heapq.heappop(heap)
            given.setdefault(receiver, []).append(group)
            heapq.heappush(heap, (load + weights[group.group], many + 1, receiver))
        for receiver, groups in sorted(given.items()):
            draft.accept(draft.move(sender, receiver, groups))
        if given:
            draft.reasons.append(f"processor {sender} has left and gives its groups away")


def _spread_elsewhere(draft: BalanceDraft, sender: int, staying: set[int]) -> None:
    """Groups that are spread, also over a processor that has left, stay at the other holders."""
    for group in draft.held[sender]:
        if group.moving or len(group.holders) < 2 or group.group in draft.taken or draft.left <= 0:
            continue
        others = tuple(h for h in group.holders if h in staying)
        if not others:
            others = (min(staying, key=lambda p: (draft.loads.get(p, float("inf")), p)),)
        spread = group.spread if len(others) > 1 else None
        draft.accept(draft.several_move(group, others, spread, 0.0))
        draft.reasons.append(f"group {group.group} is also held by processor {sender}, which left")

"""`plait query replay`: decide again with another policy, from the events of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from plait.adapt.policy import PlanPolicy
from plait.adapt.replay import ReplayedDecision, replay, started, summary
from plait.cli.inputs import reading
from plait.cli.show import aligned, say, show_json
from plait.errors import PolicyError, SourceError
from plait.figures import count, duration
from plait.node.reports.event_log import read_events
from plait.plan.labels import plan_label


def replay_events(path: Path, given: Sequence[str], out: Path | None) -> None:
    """Decide again, and show where the two policies differ."""
    with reading(path):
        if path.is_char_device():
            raise SourceError(f"{path} is a device", remedy="give an event log or its folder")
        events = read_events(event_log(path))
    recorded = started(events).policy
    policy = replace(recorded, **overrides(given))
    found = list(replay(events, policy))
    figures = summary(found)
    if show_json(out, lambda: _plain(found, policy, figures)):
        return
    changed = [r for r in found if r.decision.kind != r.recorded["kind"] or _moves(r)]
    say(f"{count(len(found), 'comparison')} of plans; where one of the policies moves:")
    if changed:
        for line in aligned(_rows(changed), left=(2, 3, 4)):
            say(line)
    _show_plans("recorded", figures["recorded_moves"], figures["recorded_cost"])
    changes = ", ".join(given) or "the same policy"
    _show_plans(f"replayed with {changes}", figures["moves"], figures["cost"])


def _show_plans(title: str, moves: int, cpu: float) -> None:
    plans = f"plans that take {duration(cpu)} of CPU per second on average"
    say(f"{title}: {count(moves, 'move')}, {plans}")


def event_log(path: Path) -> Path:
    """Find the events of a checkpoint; any other path is a log itself."""
    logs = sorted(path.glob("plait/*/events"))
    if len(logs) > 1:
        raise SourceError(
            f"{path} has several joins", remedy=f"give one of {', '.join(map(str, logs))}"
        )
    return logs[0] if logs else path


def overrides(given: Sequence[str]) -> dict[str, Any]:
    """Read thresholds from the command line.

    >>> overrides(["margin=0.5", "confirm=3", "latency=none"])
    {'margin': 0.5, 'confirm': 3, 'latency': None}
    """
    found: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise PolicyError(f"{text!r} is no threshold", remedy="write KEY=VALUE")
        if value.lower() == "none":
            found[key] = None
            continue
        try:
            found[key] = int(value) if value.lstrip("-").isdigit() else float(value)
        except ValueError:
            raise PolicyError(
                f"the threshold {key} is {value!r}, not a number", remedy="write KEY=NUMBER"
            ) from None
    PlanPolicy.from_dict(found)
    return found


def _moves(one: ReplayedDecision) -> bool:
    return "move" in (one.decision.kind, one.recorded["kind"])


def _rows(found: Sequence[ReplayedDecision]) -> list[list[str]]:
    head = ["processor", "batch", "recorded", "replayed", "why"]
    return [
        head,
        *(
            [
                str(r.processor),
                str(r.batch),
                _short(r.recorded["kind"], r.recorded["plan"]),
                _short(r.decision.kind, None if r.decision.plan is None else str(r.decision.plan)),
                r.decision.reasons[-1],
            ]
            for r in found
        ),
    ]


def _short(kind: str, plan: str | None) -> str:
    return kind if plan is None or kind == "stay" else f"{kind} {plan.partition(' by ')[0]}"


def _plain(
    found: Sequence[ReplayedDecision], policy: PlanPolicy, figures: dict[str, Any]
) -> dict[str, Any]:
    return {
        "policy": policy.to_dict(),
        **figures,
        "decisions": [
            {
                "processor": r.processor,
                "batch": r.batch,
                "time": r.time,
                "recorded": dict(r.recorded),
                "replayed": r.decision.to_dict(),
                "plan": plan_label(r.plan),
            }
            for r in found
        ],
    }

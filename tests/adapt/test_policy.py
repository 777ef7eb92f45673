from __future__ import annotations

import pytest

from plait.adapt.policy import PlanPolicy
from plait.errors import PolicyError


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"margin": -0.1}, "margin=-0.1; give a number from 0 to 1"),
        ({"confidence": 1.5}, "confidence=1.5; give a number from 0 to 1"),
        ({"rest": float("nan")}, "rest=nan"),
        ({"least": "much"}, "least='much'"),
        ({"half_life": 0}, "half_life=0; give more"),
        ({"sample_rows": 0}, "sample_rows=0; give a whole number"),
        ({"confirm": True}, "confirm=True"),
        ({"backoff": float("inf")}, "backoff=inf"),
    ],
)
def test_thresholds_without_sense_are_refused(bad: dict[str, object], why: str) -> None:
    with pytest.raises(PolicyError) as error:
        PlanPolicy.from_dict(bad)
    assert why in str(error.value)


def test_a_policy_survives_as_plain_data() -> None:
    policy = PlanPolicy(margin=0.3, latency=0.5, confirm=3)
    assert PlanPolicy.from_dict(policy.to_dict()) == policy
    assert PlanPolicy.from_dict({"margin": 0.3}) == PlanPolicy(margin=0.3), "the rest is as usual"

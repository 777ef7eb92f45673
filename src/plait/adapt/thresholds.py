"""Checks that all policies share: fields must be numbers, and unknown names are refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from plait.errors import PolicyError, did_you_mean


def check_number(policy: object, name: str, most: float = math.inf) -> None:
    """Refuse a threshold that is not a number from 0 to `most`."""
    value = getattr(policy, name)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= most or math.isinf(value):
        allowed = "a number >= 0" if math.isinf(most) else f"a number from 0 to {most:g}"
        raise PolicyError(f"a policy with {name}={value!r}", remedy=f"give {allowed}")


def known_thresholds(policy: type[Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `given`, or refuse a name that is not a field of the policy."""
    known = [f.name for f in fields(policy)]
    for name in given:
        if name not in known:
            raise PolicyError(f"a policy has no {name!r}", remedy=did_you_mean(name, known))
    return given

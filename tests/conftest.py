"""How hard the generated tests try: a few seconds by default, the same examples every time in CI.

`--hypothesis-profile=thorough` tries ten times as many, and `PLAIT_EXAMPLES=quick`, which
`./dev check` sets, a quarter.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_COMMON = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
settings.register_profile("default", _COMMON, max_examples=100)
settings.register_profile("ci", _COMMON, max_examples=100, derandomize=True)
settings.register_profile("quick", _COMMON, max_examples=25, derandomize=True)
settings.register_profile("thorough", _COMMON, max_examples=1000)
settings.load_profile(
    os.environ.get("PLAIT_EXAMPLES") or ("ci" if os.environ.get("CI") == "true" else "default")
)

"""How hard the generated tests try: a few seconds by default, the same examples every time in CI.

`--hypothesis-profile=thorough` tries ten times as many, and `PLAIT_EXAMPLES=quick`, which
`./dev check` sets, a quarter.

Also: comparison with the texts under `tests/golden`; `PLAIT_REWRITE_GOLDEN=1` writes them anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from plait.engine.driver import Engine
from plait_lab.engine.checked import Checked

_COMMON = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
settings.register_profile("default", _COMMON, max_examples=100)
settings.register_profile("ci", _COMMON, max_examples=100, derandomize=True)
settings.register_profile("quick", _COMMON, max_examples=10, derandomize=True)
settings.register_profile("thorough", _COMMON, max_examples=1000)
settings.load_profile(
    os.environ.get("PLAIT_EXAMPLES") or ("ci" if os.environ.get("CI") == "true" else "default")
)

Engine.supervise = Checked
"""Every engine of the tests asserts the contract of its tactic."""


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the one of that name in `tests/golden`, below the folder of the test."""
    tests = Path(__file__).parent
    folder = tests / "golden" / request.path.parent.relative_to(tests)

    def compare(name: str, text: str) -> None:
        path = folder / name
        if os.environ.get("PLAIT_REWRITE_GOLDEN"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        assert text + "\n" == path.read_text(encoding="utf-8"), (
            f"{name} differs; if that is meant, run the test with PLAIT_REWRITE_GOLDEN=1"
        )

    return compare

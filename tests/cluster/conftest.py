"""Comparison with the texts under tests/golden/cluster; PLAIT_REWRITE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "golden" / "cluster"


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    def compare(name: str, text: str) -> None:
        path = FOLDER / name
        if os.environ.get("PLAIT_REWRITE_GOLDEN"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        assert text + "\n" == path.read_text(encoding="utf-8"), (
            f"{name} differs; if that is meant, run the test with PLAIT_REWRITE_GOLDEN=1"
        )

    return compare

"""Measurements by name."""

from __future__ import annotations

import pytest

from plait.errors import PlaitError
from plait_lab.reporting.catalogue import Catalogue

CATALOGUE = Catalogue(
    "figure",
    {
        "b/scaling": "plait_lab.bench.kernel.scaling:window_scaling",
        "a/output": "plait_lab.bench.kernel.peers:output",
    },
)


def test_names_are_sorted_and_described_by_their_function() -> None:
    assert CATALOGUE.names() == ["a/output", "b/scaling"]
    assert CATALOGUE.describe("a/output").startswith("How fast results are found")


@pytest.mark.parametrize("act", [CATALOGUE.describe, CATALOGUE.run])
def test_an_unknown_name_is_called_what_it_is(act: object) -> None:
    assert callable(act)
    with pytest.raises(PlaitError) as raised:
        act("a/outputs")
    assert str(raised.value) == (
        "there is no figure 'a/outputs'; did you mean 'a/output'? known: a/output, b/scaling"
    )


def test_options_are_checked_before_anything_runs() -> None:
    with pytest.raises(PlaitError, match="must be positive"):
        CATALOGUE.run("b/scaling", {"rows": "-1"})


def test_a_module_is_imported_when_it_is_asked_for() -> None:
    """A broken entry does not break the others."""
    partly = Catalogue(
        "figure", {"good": "plait_lab.bench.kernel.peers:output", "bad": "plait.no:no"}
    )
    assert partly.names() == ["bad", "good"]
    assert partly.describe("good")
    with pytest.raises(ModuleNotFoundError):
        partly.describe("bad")

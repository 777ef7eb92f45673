"""Options given as text: numbers, checked, with errors that name the culprit."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from plait.errors import PlaitError
from plait_lab.reporting.options import parse_options


@dataclass(frozen=True, slots=True)
class Options:
    rows: int = 100
    share: float = 0.5


def test_defaults_and_what_replaces_them() -> None:
    assert parse_options("bench", Options, {}) == Options()
    assert parse_options("bench", Options, {"rows": "7"}) == Options(rows=7)
    assert parse_options("bench", Options, {"share": "1e-3", "rows": "1"}) == Options(1, 0.001)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"row": "7"}, "bench has no option 'row'; did you mean 'rows'? known: rows, share"),
        ({"zzz": "7"}, "bench has no option 'zzz'; known: rows, share"),
        ({"rows": "many"}, "the option rows of bench is 'many', not a int; its default is 100"),
        ({"rows": "1.5"}, "the option rows of bench is '1.5', not a int; its default is 100"),
        ({"share": ""}, "the option share of bench is '', not a float; its default is 0.5"),
        ({"rows": "0"}, "the option rows of bench must be positive, not 0"),
        ({"share": "-0.1"}, "the option share of bench must be positive, not -0.1"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, str], message: str) -> None:
    with pytest.raises(PlaitError) as raised:
        parse_options("bench", Options, given)
    assert str(raised.value) == message


@pytest.mark.parametrize("text", ["nan", "inf"])
def test_a_number_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(PlaitError):
        parse_options("bench", Options, {"share": text})

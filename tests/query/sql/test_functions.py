"""The page of functions says what the table has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plait.query.sql.functions import AGGREGATES, INEXACT, NAMED

PAGE = Path(__file__).parents[3] / "docs" / "functions.md"


def test_the_page_lists_every_function() -> None:
    known, refused = PAGE.read_text().split("## Refused")
    paragraphs = [line for line in known.split("\n") if re.fullmatch(r"(`\w+`(, |\.))+", line)]
    listed = re.findall(r"`(\w+)`", " ".join(paragraphs))
    assert sorted(listed) == sorted(NAMED)
    assert set(re.findall(r"`(\w+)`", refused)) >= INEXACT


def test_no_name_means_two_things() -> None:
    assert not set(NAMED) & INEXACT
    assert not set(NAMED) & AGGREGATES


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = re.findall(r"```(?:python)?\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    assert capsys.readouterr().out == printed

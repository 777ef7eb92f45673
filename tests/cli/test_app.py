"""The command line as a whole: groups, names that were mistyped, one meaning for each option."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from plait.cli import main
from plait.cli.app import app
from plait_lab.cli.app import app as lab

PLACES = {"FILE", "DIR", "PATH"}
"""Metavars of options that name a place in the file system."""


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command, with the words that are typed."""
    yield path, command
    if isinstance(command, TyperGroup):
        for name, each in command.commands.items():
            yield from commands(each, f"{path} {name}")


def options(which: typer.Typer, name: str) -> Iterator[tuple[str, Any]]:
    for path, command in commands(typer.main.get_command(which), name):
        for parameter in command.params:
            if parameter.param_type_name == "option":
                yield path, parameter


def shape(option: Any) -> tuple[object, ...]:
    """What one types: a flag or a value, once or often, with which letters and names."""
    place = "a place" if option.metavar in PLACES else option.metavar
    names = frozenset([*option.opts, *option.secondary_opts])
    return names, option.is_flag, option.multiple, place


@pytest.mark.parametrize(("which", "name"), [(app, "plait"), (lab, "plait-lab")])
def test_a_letter_or_a_flag_has_one_meaning_and_one_shape(which: typer.Typer, name: str) -> None:
    seen: dict[str, tuple[str, tuple[object, ...]]] = {}
    for path, option in options(which, name):
        for typed in (*option.opts, *option.secondary_opts):
            first, known = seen.setdefault(typed, (path, shape(option)))
            assert known == shape(option), f"{typed} of {path} is not that of {first}"
    assert {"--json", "--help"} <= seen.keys() | {"--help"}


def test_both_command_lines_agree_but_for_the_options_of_measurements() -> None:
    seen: dict[str, tuple[object, ...]] = {}
    for _, option in options(app, "plait"):
        seen |= dict.fromkeys(option.opts, shape(option))
    for path, option in options(lab, "plait-lab"):
        for typed in option.opts:
            if typed != "-o":
                assert seen.get(typed, shape(option)) == shape(option), f"{typed} of {path}"


def test_the_output_is_always_o_and_json_always_names_a_file() -> None:
    found = dict.fromkeys(["--out", "--json"], 0)
    for path, option in options(app, "plait"):
        assert ("-o" in option.opts) == ("--out" in option.opts), path
        for typed in found.keys() & {*option.opts}:
            assert not option.is_flag and option.metavar in PLACES, path
            found[typed] += 1
    assert all(number > 2 for number in found.values())


def test_every_command_has_a_group_and_says_what_it_does() -> None:
    known = {path for path, _ in commands(typer.main.get_command(app), "plait")}
    assert known == {
        *("plait", "plait run", "plait explain", "plait plan", "plait demo", "plait generate"),
        *(f"plait query{c}" for c in ("", " console", " report", " upgrade", " rebalance")),
        *("plait query replay", "plait env", "plait env java", "plait env doctor"),
        *("plait env calibrate", "plait env warm", "plait delta", "plait delta vacuum"),
    }
    for path, command in commands(typer.main.get_command(app), "plait"):
        assert command.help, path
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{path}: {parameter.name}"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("console", "plait query console"),
        ("rebalance", "plait query rebalance"),
        ("java", "plait env java"),
        ("vacuum", "plait delta vacuum"),
        ("query consle", "plait query console"),
        ("env report", "plait query report"),
        ("rnu", "plait run"),
    ],
)
def test_an_old_or_mistyped_command_is_answered_with_what_was_meant(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*typed.split(), "checkpoint"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said == [f"error: there is no command plait {typed}", f"  did you mean {meant}?"]


def test_a_group_alone_shows_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for group, command in (("query", "console"), ("env", "doctor"), ("delta", "vacuum")):
        assert main([group]) == 0
        assert command in capsys.readouterr().out

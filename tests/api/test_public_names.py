"""The public names: all are documented, and whatever a public call returns is one of them."""

from __future__ import annotations

import inspect
import re
import typing
from pathlib import Path
from typing import Any

import plait

API = Path(__file__).parents[2] / "docs" / "api.md"
PACKAGES = (plait, plait.spark, plait.sites)
OPAQUE = {"Jep", "Plan", "Planned", "Query", "SiteSetting"}
"""Values that users pass on and print; what their own methods return belongs to the engine."""


def public() -> dict[str, Any]:
    """The public functions, classes and aliases by name."""
    found = {
        name: getattr(package, name)
        for package in PACKAGES
        for name in package.__all__
        if name != "__version__"
    }
    return {name: value for name, value in found.items() if not inspect.ismodule(value)}


def classes(annotation: Any) -> set[type]:
    """The classes of Plait in an annotation."""
    if inspect.isclass(annotation):
        return {annotation} if annotation.__module__.startswith("plait.") else set()
    return {found for part in typing.get_args(annotation) for found in classes(part)}


def calls(name: str, value: Any) -> list[Any]:
    """A public function, or the public methods and properties of a class."""
    if inspect.isfunction(value):
        return [value]
    if not inspect.isclass(value) or name in OPAQUE:
        return []
    members = [m for n, m in inspect.getmembers(value) if not n.startswith("_")]
    functions = [m.fget if isinstance(m, property) else m for m in members]
    return [inspect.unwrap(f) for f in functions if inspect.isroutine(f)]


def returned(call: Any) -> set[type]:
    """The classes of Plait that a call returns, also where its types are named for mypy only."""
    annotation = getattr(call, "__annotations__", {}).get("return")
    if not isinstance(annotation, str):
        return classes(annotation)
    known = {n: v for n, v in public().items() if inspect.isclass(v)}
    names = {n for n in re.findall(r"\w+", annotation) if n[0].isupper()}
    hidden = {n for n in names if n not in known and n not in call.__globals__}
    found = {known[n] for n in names - hidden if n in known}
    for name in names - set(known) - hidden:
        found |= classes(call.__globals__[name])
    return found


def test_what_public_calls_return_is_exported() -> None:
    exported = {found for value in public().values() for found in classes(value)}
    exported |= {e for e in vars(plait.errors).values() if isinstance(e, type)}
    missing = {
        f"{name}: {getattr(call, '__qualname__', call)} returns {kind.__qualname__}"
        for name, value in public().items()
        for call in calls(name, value)
        for kind in returned(call) - exported
    }
    assert not missing, sorted(missing)
    assert plait.Results in exported and plait.Progress in exported


def test_the_api_page_lists_exactly_the_public_names() -> None:
    listed = re.findall(r"^::: ([\w.]+)$", API.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) == len(set(listed))
    names = {place.rpartition(".")[2] for place in listed} - {"errors", "oracle", "streams"}
    assert names == set(public())

"""The tree as a table of contents: each package says what it holds, and none is crowded."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TREES = (ROOT / "src" / "plait", ROOT / "lab" / "src" / "plait_lab")
PACKAGES = sorted(path for tree in TREES for path in tree.rglob("__init__.py"))
MOST_MODULES = 17
"""About fifteen; beyond that a folder is divided."""

LARGER = {"src/plait/query/values": "one module per family of functions"}


def name_of(path: Path) -> str:
    return path.parent.relative_to(ROOT).as_posix()


def docstring(path: Path) -> str:
    """The docstring on one line."""
    return " ".join((ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split())


@pytest.mark.parametrize("path", PACKAGES, ids=name_of)
def test_a_package_says_what_it_holds_what_it_may_touch_and_where_to_begin(path: Path) -> None:
    text = docstring(path)
    sentences = re.findall(r"[.:!](?=\s|$)", text)
    assert len(sentences) >= 3, f"three sentences, please: {text}"
    assert "egin with" in text or "begin there" in text, f"where to begin is not said: {text}"


@pytest.mark.parametrize("path", PACKAGES, ids=name_of)
def test_a_package_names_only_what_is_there(path: Path) -> None:
    """The modules at which a reader is told to begin."""
    text = docstring(path)
    (begin,) = re.findall(r"[Bb]egin with\s(.*)", text, re.DOTALL) or [""]
    for name in re.findall(r"`([\w/.]+)`", begin):
        inside = name.removeprefix("plait.").removeprefix("plait_lab.").replace("/", ".")
        parts = inside.removesuffix(".py").split(".")
        found = any(
            there.with_suffix(".py").exists() or there.is_dir()
            for place in (path.parent, *TREES)
            for there in (place.joinpath(*parts), place.joinpath(*parts[:1]))
        )
        assert found, f"{name} is not there"


@pytest.mark.parametrize("path", PACKAGES, ids=name_of)
def test_no_folder_is_crowded(path: Path) -> None:
    modules = [p for p in path.parent.glob("*.py") if p.name not in ("__init__.py", "__main__.py")]
    if name_of(path) not in LARGER:
        assert len(modules) <= MOST_MODULES, sorted(p.name for p in modules)

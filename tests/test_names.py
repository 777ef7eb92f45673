"""One name for one thing: no two classes of the product have the same."""

from __future__ import annotations

import ast
from pathlib import Path

import plait

PRODUCT = Path(plait.__file__).parent
ALLOWED = {"Join": {"plan/jtree.py", "api/join.py"}}
"""A join is a node of a plan, and `plait.Join` is what users write; no module has both."""


def classes() -> dict[str, set[str]]:
    """The modules that define a class of each name."""
    found: dict[str, set[str]] = {}
    for path in sorted(PRODUCT.rglob("*.py")):
        name = path.relative_to(PRODUCT)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, set()).add(name.as_posix())
    return found


def test_every_class_has_a_name_of_its_own() -> None:
    found = classes()
    assert len(found) > 200, "the product is there"
    assert {name: where for name, where in found.items() if len(where) > 1} == ALLOWED

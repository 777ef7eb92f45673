"""What CONTRIBUTING.md says of the layers is what the import contracts enforce."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def layers_enforced() -> list[str]:
    """All layers from the top; those of one level in the order in which they stand."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = [c["layers"] for c in contracts["contracts"] if c["id"] == "layers"]
    return [name for level in layers for name in re.split(r" [|:] ", level)]


def test_the_table_of_layers_is_that_of_the_contracts() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Layers")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    assert [name for cell in cells for name in re.findall(r"`(\w+)`", cell)] == layers_enforced()


def test_every_layer_is_required_and_there() -> None:
    package = ROOT / "src" / "plait"
    there = {p.stem for p in package.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert set(layers_enforced()) == there - {"__init__"}

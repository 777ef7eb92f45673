"""The page of assumptions, the comments in the code and the tests that it names agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "plait"

ROW = re.compile(r'^\| <a id="([a-z-]+)"></a>([a-z-]+) \|(.+)\|(.+)\|(.+)\|(.+)\|$', re.MULTILINE)
ROWS = {row[1]: row for row in ROW.finditer((ROOT / "docs" / "assumptions.md").read_text())}
NO_TEST = "no test yet"


def named_in_code() -> dict[str, set[str]]:
    """The modules that rely on each assumption."""
    found: dict[str, set[str]] = {}
    for path in SOURCES.rglob("*.py"):
        for name in re.findall(r"# Assumption: (\S+)$", path.read_text(), re.MULTILINE):
            found.setdefault(name, set()).add(str(path.relative_to(SOURCES)))
    return found


def test_each_name_in_the_code_has_a_row_that_names_the_module() -> None:
    told = {name: set(re.findall("`([^`]+)`", row[4])) for name, row in ROWS.items()}
    assert named_in_code() == told


@pytest.mark.parametrize("name", ROWS)
def test_each_row_is_complete_and_its_tests_exist(name: str) -> None:
    row = ROWS[name]
    assert row[1] == row[2], "the anchor is the name"
    tests = re.findall(r"`(tests/[^`:]+)::(\w+)`", row[6])
    assert tests or row[6].strip() == NO_TEST
    for path, test in tests:
        assert f"def {test}(" in (ROOT / path).read_text(), f"{path} has no {test}"


def test_the_page_has_no_other_rows() -> None:
    lines = (ROOT / "docs" / "assumptions.md").read_text().splitlines()
    rows = [
        line for line in lines if line.startswith("|") and not re.match(r"\|( name |---)", line)
    ]
    assert len(rows) == len(ROWS)

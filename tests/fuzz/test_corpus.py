"""The corpus, and inputs made from it: no reader raises anything but errors of Plait.

What once failed is in the corpus. `harness.py` searches for more, guided by coverage.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.harness import CORPUS, NAMES, minimise, mutated, seeds
from tests.fuzz.targets import BLOCKS, TARGETS

FILES = [path for name in NAMES for path in sorted((CORPUS / name).iterdir())]
TEXT = st.lists(
    st.sampled_from(
        ['"', '""', ",", "\n", "\r", "\r\n", "\t", "a", "7", "-1", "1.5", "18446744073709551615",
         "9" * 40, "0x1F", "true", "nan", "2024-01-01T09:00:00", "2024-01-01", " ", "\0", "é",
         "\ufeff", "\u2028", "k,s\n"]
    ),
    max_size=30,
).map("".join)  # fmt: skip
VALUE = st.recursive(
    st.sampled_from(
        ["1", "-7", "1.5", "1e400", "18446744073709551615", "9" * 40, "true", "null", "NaN", '"a"',
         '"2024-01-01T09:00:00"', '"\\ud800"', '"é"', "x", ""]
    ),
    lambda inner: st.lists(inner, max_size=3).map(lambda vs: f"[{', '.join(vs)}]")
    | inner.map(lambda v: f'{{"a": {v}}}'),
    max_leaves=4,
)  # fmt: skip
LINE = st.lists(st.tuples(st.sampled_from(["x", "y", ""]), VALUE), max_size=3).map(
    lambda fields: "{" + ", ".join(f'"{name}": {value}' for name, value in fields) + "}"
)
LINES = st.lists(
    LINE | VALUE | st.sampled_from(["", " ", "{", "\x0c", '{"x": 1} {"x": 2}']), max_size=8
).map("\n".join)
CHOICE = st.integers(0, 255)


def test_every_target_has_a_corpus() -> None:
    assert set(TARGETS) == set(NAMES) == {path.name for path in CORPUS.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_corpus_raises_nothing_and_counts_every_row(path: Path) -> None:
    data = path.read_bytes()
    target = TARGETS[path.parent.name]
    target(data)
    if path.parent.name in ("csv", "jsonl"):
        for size in range(len(BLOCKS)):
            target(bytes([size + (data[0] & 16)]) + data[1:])


@given(CHOICE, TEXT, st.binary(max_size=3))
def test_oracle_csv_files_that_are_made_up(choice: int, text: str, more: bytes) -> None:
    header = "k,s\n" if choice % 3 else ""
    TARGETS["csv"](bytes([choice]) + (header + text).encode() + more)


@given(CHOICE, LINES, st.binary(max_size=3))
def test_oracle_json_lines_that_are_made_up(choice: int, text: str, more: bytes) -> None:
    TARGETS["jsonl"](bytes([choice]) + text.encode() + more)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_mutations_of_the_corpus(name: str, seed: int) -> None:
    choose, corpus = random.Random(seed), seeds(name)
    TARGETS[name](mutated(choose.choice(corpus), corpus, choose))


@given(st.text(max_size=60))
def test_any_text_as_a_query_a_plan_or_an_event(text: str) -> None:
    for name in ("sql", "plan", "plan_json", "query_json", "events"):
        TARGETS[name](text.encode("utf-8", "replace"))


NESTED = """
import sys
from tests.fuzz.targets import TARGETS

for levels in (200, 3_000, 100_000):
    texts = {
        "csv": '\\x06k,s\\n1,"' + '""' * levels,
        "jsonl": '\\x06{"x": 1}\\n{"x": ' + '{"x": [' * levels + "]}" * levels + "}\\n",
        "parquet": "PAR1" * levels,
        "sql": "SELECT " + "(" * levels + "a.k" + ")" * levels + " FROM a",
        "plan": "(" * levels + "a" + ")" * levels,
        "plan_json": '{"kind": "join", "orders": [], "children": [' * levels,
        "query_json": '{"version": ' + "[" * levels + "]" * levels + "}",
        "events": '{"event": ' + "[" * levels + "]" * levels + "}\\n",
    }
    for name, text in texts.items():
        print(name, levels, flush=True)
        TARGETS[name](text.encode())
"""


@pytest.mark.slow
def test_deep_nesting_does_not_end_the_process() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", NESTED], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, f"{ran.stdout.splitlines()[-1]}: {ran.stderr}"
    assert len(ran.stdout.splitlines()) == 3 * len(NAMES)


def test_minimise_keeps_the_failure() -> None:
    def fails(data: bytes) -> None:
        assert b"x" not in data or b"y" not in data

    assert minimise(fails, b"aaaxbbbbbybcc") == b"xy"
    assert minimise(fails, b"abc") == b"abc"

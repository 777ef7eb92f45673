"""Every size that switches behaviour is a field of `Tuning`, which the laws draw at random."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from random import Random

import pytest

import plait
from plait.tuning import USUAL, Tuning
from plait_lab.laws.strategies.tunings import NAMES, drawn_tuning

SOURCE = Path(plait.__file__).parent
HOSTED = ("kernels", "engine", "adapt", "groups", "node", "sites", "machine", "local", "spark")
"""The packages that run a query."""

LAYOUT = "how data is laid out, not when"
TIMES = "the ends of time"
DECISIONS = "by what the loop decides; the laws draw the policy, and feed it lies"
COMPUTED = "speed of a modelled machine, or how to measure a real one"
SHOWN = "how much is shown to people"
HOST = "what the machine or Spark must have"

OTHERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "kernels.arrival": (LAYOUT, ("_HALF",)),
    "kernels.hashing": (LAYOUT, ("_ALL_BITS",)),
    "kernels.unkeyed": (LAYOUT, ("_ODD_1", "_ODD_2", "_32", "_29")),
    "kernels.index": (LAYOUT, ("LATEST", "_LINK_BITS")),
    "kernels.ring": (LAYOUT, ("ID_MASK", "HEAD_ID")),
    "kernels.single": (
        LAYOUT,
        (
            "DONE",
            "HEAD",
            "STATE_WORDS",
            "WAY_TARGET",
            "WAY_PLACES",
            "WAY_WORDS",
            "PLACE_STREAM",
            "OTHER_ADDRESS",
            "PLACE_WORDS_EACH",
            "BACK",
            "_LINK_BITS",
            "_FAR",
            "_NODE_WORDS",
            "_GOLDEN",
        ),
    ),
    "kernels.window": (LAYOUT, ("_NO_TIMES", "_AS_THEY_STAND", "_NODE_WORDS")),
    "engine.intake.codes": (LAYOUT, ("_NAN_BITS",)),
    "engine.intake.times": (
        TIMES,
        ("BEFORE_ALL_TIMES", "AFTER_ALL_TIMES", "MOST_DISTANT_TIME", "_PER_MICRO"),
    ),
    "engine.mark": (TIMES, ("_FAR_FUTURE",)),
    "engine.probe": (TIMES, ("_FAR_PAST",)),
    "engine.tactics.policies": (DECISIONS, ("_HEARD",)),
    "engine.tactics.routed": (LAYOUT, ("BLOCK", "_BLOCK_MASK")),
    "engine.sampling": (DECISIONS, ("CHECKED_PER_ROW",)),
    "adapt.decide": (DECISIONS, ("_TRIES", "_CORRELATED")),
    "adapt.knowledge": (
        DECISIONS,
        ("_FADES", "_NEGLIGIBLE", "_ERRORS", "_SINGLE", "_NONE"),
    ),
    "adapt.loop": (DECISIONS, ("_LEAST_BATCHES", "_PRICES", "_SAMPLES")),
    "sites.planner.meter": (DECISIONS, ("_FADES", "_MICROS")),
    "adapt.state": (LAYOUT, ("VERSION",)),
    "sites.spark.mail": (TIMES, ("AGELESS",)),
    "sites.planner.assumptions": (DECISIONS, ("_RATE", "_TEXT_BYTES")),
    "adapt.when": (
        DECISIONS,
        (
            "_ALLOWANCE",
            "_LEAST_BATCHES",
            "_FASTER",
            "_MATCHES",
            "_SLOW",
            "_NEWEST",
            "_SEEDS",
            "_LARGER",
        ),
    ),
    "node.sub_batches": (DECISIONS, ("_GROWTH",)),
    "node.durable.contract": (LAYOUT, ("FORMAT",)),
    "node.epochs": ("how many control directories a header remembers", ("REMEMBERED",)),
    "node.durable.header": (LAYOUT, ("VERSION",)),
    "sites.site.header": (LAYOUT, ("VERSION",)),
    "sites.site.packets": (LAYOUT, ("VERSION", "_LENGTH_BYTES")),
    "sites.site.migration": (LAYOUT, ("NO_PLAN",)),
    "sites.site.store": (LAYOUT, ("WINDOW",)),
    "sites.site.one_way": (TIMES, ("_ALL",)),
    "sites.plans.plan": (LAYOUT, ("Placement",)),
    "sites.plans.serde": (LAYOUT, ("VERSION",)),
    "sites.planner.cost": (COMPUTED, ("NESTED_LOOP", "HASH")),
    "groups.moves.lanes": (LAYOUT, ("_STREAMS", "PLAIN")),
    "machine.names": (HOST, ("LONGEST_NAME",)),
    "node.time_outliers": (SHOWN, ("_DAY", "_YEAR")),
    "codec": ("beyond this, sums are no floats", ("_LARGE",)),
    "node.reports.progress_text": (SHOWN, ("_MOST_SHOWN",)),
    "groups.routing.rows": (LAYOUT, ("_NARROW", "_WIDTHS")),
    "spark.io.kafka": (LAYOUT, ("_HEADER",)),
    "local.calibrate": (COMPUTED, ("_SECOND", "_PULL", "WORKLOADS")),
    "machine.heap": (
        "settings of the C library",
        ("_TRIM_THRESHOLD", "_LARGEST_FROM_HEAP", "_KEPT"),
    ),
    "spark.io.delta_parts": (SHOWN, ("_LONGEST_TEXT",)),
    "spark.io.delta_table": ("how often others may be faster", ("_TRIES",)),
    "spark.io.delta_vacuum": ("how long a batch may take", ("_LEAST",)),
    "spark.arena.manifest": (LAYOUT, ("FORMAT", "_DIGEST_BYTES")),
    "local.order": (TIMES, ("AFTER_ALL_TIMES",)),
    "machine.private": (HOST, ("_PRIVATE_FOLDER",)),
    "local.options": ("the default of a parameter", ("BATCH_ROWS", "UNDATED_ROWS")),
    "spark.arena.room": ("times that no file has otherwise", ("_LONG_AGO",)),
    "local.sinks": (
        "sizes of the files written",
        ("ROW_GROUP_ROWS", "ROW_GROUP_BYTES"),
    ),
    "node.reports.history_log": ("how much of a log is read at once", ("_MOST",)),
    "machine.stores": (HOST, ("_CONNECT_SECONDS", "LARGEST")),
    "local.sources.bad": (SHOWN, ("DEFAULT_LIMIT", "LONGEST_TEXT", "_SHOWN")),
    "local.sources.base": ("the default of a parameter", ("CHUNK_ROWS",)),
    "local.sources.epoch": (TIMES, ("UNITS", "_YEAR_9999")),
    "local.sources.lines": ("the default of a parameter", ("MAX_DEPTH", "_TRIMS")),
    "local.sources.scan": (LAYOUT, ("RECORD",)),
    "local.sources.types": (LAYOUT, ("WIDE", "_LEAST")),
    "local.sources.text": ("the default of a parameter", ("BLOCK_BYTES", "MAX_RECORD_BYTES")),
    "spark.checkpoint.damage": (HOST, ("_LOGS",)),
    "spark.environment.java": (HOST, ("OLDEST",)),
    "spark.balance.balancer": (
        "how often a task decides; results do not depend on it",
        ("_LOOKS", "_IDLE"),
    ),
    "spark.balance.driver_tasks": ("how often a task runs", ("_REMOTE",)),
    "spark.control.background": ("how often a task runs", ("SHORTEST",)),
    "spark.control.cached_tables": (
        "the defaults of parameters that tests draw",
        ("AHEAD", "_PAUSES"),
    ),
    "spark.control.locks": ("how long a lock counts", ("_FRESH", "_RENEWED")),
    "spark.control.driver_service": (
        "how a thread keeps a log; results do not depend on it",
        ("_AT_ONCE", "_EXPIRED", "_IDLE"),
    ),
    "spark.control.plan_requests": (SHOWN, ("_KEPT",)),
    "node.reports.history": (SHOWN, ("_KEPT",)),
    "spark.control.report_files": (
        "how far ahead a table is decided, and how reports are stored",
        ("_TIMED", "_MOST_AHEAD", "_BLOCKS"),
    ),
    "spark.control.directory": (
        "how much of a log is shown",
        ("_LARGE_EVENT",),
    ),
    "spark.control.spark_log": (SHOWN, ("_FAR",)),
    "spark.control.background_requests": (
        "how long a store is waited for; results do not depend on it",
        ("PATIENCE", "_MOST_WAITING", "_PAUSES"),
    ),
    "spark.balance.rebalance": ("the version of Spark's log", ("_LOG_VERSION",)),
    "spark.control.progress": (SHOWN, ("_DECISIONS",)),
    "node.reports.cluster_monitor": (COMPUTED, ("_SECOND",)),
    "node.reports.placement": (SHOWN, ("_MOST_NAMED",)),
    "spark.join.operator": ("caches of other runs", ("_MOST_ARENAS",)),
    "spark.environment.doctor": (SHOWN, ("_ROOM",)),
    "sites.spark.mail_sweep": ("the batches that Spark may look at again", ("_KEPT",)),
    "sites.spark.operator": ("caches of other runs", ("_MOST_SITES",)),
    "sites.spark.settings": ("how long names of folders may be", ("_LONGEST",)),
    "sites.spark.waker": (
        "how often a thread looks; results do not depend on it",
        ("_SECONDS", "_MOST_LOOKS"),
    ),
    "sites.spark.replans": ("how often reports are read", ("_LOOK_EVERY",)),
    "spark.environment.partitions": (HOST, ("SPARKS_DEFAULT", "_ROWS")),
    "spark.environment.requirements": (HOST, ("NEEDED",)),
    "spark.environment.settings": (HOST, ("REASONS",)),
}
"""Numbers that modules may have of their own, and why."""


def numbers(tree: ast.Module) -> Iterator[str]:
    """The names of a module's constants that contain a number, the first of several at once."""
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        parts = [n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)]
        if any(type(part) in (int, float) for part in parts):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            first = target.elts[0] if isinstance(target, ast.Tuple) else target
            assert isinstance(first, ast.Name)
            yield first.id


def modules() -> Iterator[tuple[str, ast.Module]]:
    for package in HOSTED:
        for path in [SOURCE / "codec.py", *sorted((SOURCE / package).rglob("*.py"))]:
            name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            yield name, ast.parse(path.read_text())


@pytest.mark.slow
def test_no_module_has_a_size_of_its_own() -> None:
    """A new number belongs into `Tuning`, or into the table above with its reason."""
    found = {(name, number) for name, tree in modules() for number in numbers(tree)}
    allowed = {(name, number) for name, (_, known) in OTHERS.items() for number in known}
    assert found - allowed == set(), "sizes that the laws do not draw"
    assert allowed - found == set(), "entries for numbers that are gone"


def test_a_size_hidden_in_a_module_would_be_found() -> None:
    tree = ast.parse("A = 'x'\n_B, C = 1 << 15, 2\nD: float = 0.5\nE = f(32_768)\n")
    assert list(numbers(tree)) == ["_B", "D", "E"]


@pytest.mark.parametrize("name", NAMES)
def test_every_size_is_used_and_drawn(name: str) -> None:
    text = "\n".join(path.read_text() for p in HOSTED for path in (SOURCE / p).rglob("*.py"))
    assert f"uning.{name}" in text or f"USUAL.{name}" in text, "a size that changes nothing"
    random = Random(7)
    drawn = {getattr(drawn_tuning(random), name) for _ in range(100)}
    assert getattr(USUAL, name) in drawn and len(drawn) > 2


def test_a_tuning_is_checked() -> None:
    for field in fields(Tuning):
        with pytest.raises(ValueError, match=field.name):
            Tuning(**{field.name: -1})

"""One reader of plans: a text means the same wherever it is given."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.api.sql import Sql
from plait.cli import main
from plait.errors import MigrationError, PlaitError, PlanError
from plait.groups.routing.routing import route
from plait.local.options import LocalOptions
from plait.local.run import run
from plait.node.reports.report import Report
from plait.plan.jtree import Join, Leaf, mjoin, parse_shape
from plait.plan.routed import Eddies, Teddies
from plait.plan.serde import dumps, to_dict
from plait.plan.text import MOST_TEXT, Given, read_plan, read_router, read_tree
from plait.spark.control.directory import Control
from plait.spark.control.joins import RegisteredJoin, register
from plait.testing.examples import clique

SQL = "SELECT a.k FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j WITHIN 5 SECONDS"
TABLES = {
    name: pa.table({"ts": pa.array([0, 1], pa.timestamp("us"))} | {key: [1, 2] for key in keys})
    for name, keys in {"a": "k", "b": "kj", "c": "j"}.items()
}
ASKED = plait.sql(TABLES, SQL)
QUERY = ASKED.query
TWICE = Join((Leaf("b"), Join((Leaf("a"), Leaf("b")), ((1,), (0,)))), ((1,), (0,)))
TREE = parse_shape(QUERY, "(a (c b))")

ACCEPTED: dict[str, str] = {
    "mjoin": "(a b c)",
    " MJoin\n": "(a b c)",
    "(a b c)": "(a b c)",
    "((a b) c)": "((a b) c)",
    " ( c,(`b` a) )\n": "(c (b a))",
    "teddies": "teddies (ordered)",
    "TEDDIES": "teddies (ordered)",
    "teddies (random)": "teddies (random)",
    "eddies": "eddies (lottery)",
    "eddies( ordered )": "eddies (ordered)",
    dumps(TREE): "(a (c b))",
    json.dumps({"query": {}, "plan": to_dict(TREE)}): "(a (c b))",
    json.dumps({"answer": "qualified", "plan": to_dict(TREE), "shape": "?"}): "(a (c b))",
}
"""Texts, and the plans that they mean."""

REFUSED: dict[str, str] = {
    "": "the plan is an empty text; give a tree such as",
    " \n": "the plan is an empty text; give a tree such as",
    "tedies": "there is no plan 'tedies'; did you mean 'teddies'? known: mjoin, eddies, teddies, "
    "or a tree such as (a b c)",
    "dynamic": "there is no plan 'dynamic'; known: mjoin, eddies, teddies, or a tree such as",
    "a": "the plan a lacks the stream 'b'",
    "(a b)": "the plan (a b) lacks the stream 'c'",
    "(a b x)": "there is no stream 'x'; known: a, b, c",
    "(a b teddies)": "there is no stream 'teddies'; known: a, b, c",
    "((a c) b)": "c shares no key with what is gathered before it in (a c); join it elsewhere",
    "((a b) (b c))": "the plan ((a b) (b c)) has the stream 'b' twice",
    "((a b) c": "the shape '((a b) c' ends too early; close every '('",
    "(a b) c": "the shape '(a b) c' goes on after its end: c",
    "((a) b c)": "the join (a) has fewer than two children",
    "teddies (lotery)": "there is no routing policy 'lotery'; did you mean 'lottery'?",
    "teddies ()": "there is no routing policy ''; known: lottery, ordered, random",
    "teddies (random": "'teddies (random' is not the name of an engine; write for example",
    "teddies and eddies": "'teddies and eddies' is not the name of an engine; write for example",
    "{": "line 1, column 2: the plan is not JSON",
    "[1, 2]": "$ is [1, 2], not an object",
    "{}": "$ lacks the field 'version'",
    '{"version": 2}': "$.version is 2; this release reads version 1; write the plan again",
    '{"version": 1, "version": 1}': "the plan has the field 'version' twice in one object",
    json.dumps({"query": {}, "plan": {"kind": "join"}}): "$ lacks the field 'version'",
    dumps(
        parse_shape(clique(4), "(a b c d)")
    ): "the plan (a b c d) has a stream 'd' that the query",
    "(" * 3_000
    + "a"
    + ")" * 3_000: "the shape is nested deeper than 3 levels; a plan of 3 streams",
    '{"version":' * 3_000: "",
    "(a " + "b " * 100_000 + ")": "the plan (a b b b",
    "x" * 100_000: "there is no plan 'xxxxxxxxx",
    "(a b c)" + ")" * MOST_TEXT: "the plan has more than 1,048,576 characters; give a tree such as",
}
"""Texts that are no plan, and how their refusal begins."""

VALUES: list[tuple[Any, str]] = [
    (None, "(a b c)"),
    (TREE, "(a (c b))"),
    (Teddies(policy="random", patience=0), "teddies (random)"),
    (Eddies(), "eddies (lottery)"),
    (to_dict(TREE), "(a (c b))"),
]
NO_PLANS: list[tuple[Any, str]] = [
    (TWICE, "the plan (b (a b)) has the stream 'b' twice"),
    (Join((Leaf("a"), Leaf("b")), ((1,), (0,))), "the plan (a b) lacks the stream 'c'"),
    ({"version": 1}, "$ lacks the field 'plan'"),
    (
        7,
        "a int is not a plan; "
        'give a tree such as "((a b) c)", "mjoin", "teddies", "eddies", or JSON',
    ),
    (b"mjoin", "a bytes is not a plan; give a tree such as"),
]


class Frame:
    """What looks like a DataFrame of Spark to the API."""

    mapInArrow = None
    sparkSession = None


Frame.__module__ = "pyspark.sql.dataframe"


@dataclass
class Running:
    """What `Running.migrate` needs of a StreamingQuery."""

    id: str
    isActive: bool = True
    name: str | None = None


class Doors:
    """Every way to give a plan: each returns the plan as it prints itself, or raises."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._folder, self._capsys = folder, capsys
        self._ran: list[object] = []
        monkeypatch.setattr(
            "plait.spark.join.frame.results",
            lambda query, frames, options: self._ran.append(options.plan),
        )
        for name, table in TABLES.items():
            pq.write_table(table, folder / f"{name}.parquet")

    def reader(self, given: Given) -> str:
        return str(read_plan(QUERY, given))

    def plan(self, given: Given) -> str:
        return str(ASKED.plan(given))

    def run(self, given: Given) -> str:
        ASKED.run(plan=given)
        return str(ASKED.start(plan=given).run.plan)

    def run_tables(self, given: Given) -> str:
        run(QUERY, TABLES, LocalOptions(plan=given))
        return str(ASKED.start(plan=given).run.plan)

    def explain(self, given: Given) -> str:
        return _plan_line(ASKED.explain(given))

    def to_df(self, given: Given) -> str:
        asked: Sql = replace(ASKED, sources=dict.fromkeys(TABLES, Frame()))
        asked.to_df(plan=given)
        return str(self._ran[-1])

    def migrate(self, given: Given) -> str:
        query, control = Running(str(self._folder.name)), Control(str(self._folder), shared=True)
        control.reports(query.id).write(0, Report(0, 1))
        register(RegisteredJoin(QUERY, None, control, route(QUERY.graph, 2)))
        plait.Running(query).migrate(given)  # type: ignore[arg-type]  # all it needs of Spark
        epoch = control.newest_epoch(QUERY)[0]
        assert epoch is not None
        return str(epoch.plan)

    def cli_explain(self, given: str) -> str:
        return self._cli("explain", "--plan", given)

    def cli_run(self, given: str) -> str:
        return self._cli("run", "--explain", "--plan", given)

    def cli_file(self, given: str) -> str:
        path = self._folder / "plan.txt"
        path.write_text(given)
        try:
            return self._cli("run", "--explain", "--plan-file", str(path))
        except PlaitError as error:
            error.message = error.message.removeprefix(f"{path}: ")
            raise

    def _cli(self, command: str, *options: str) -> str:
        streams = [part for n in TABLES for part in ("-s", f"{n}={self._folder / n}.parquet")]
        code = main([command, "-q", SQL, *streams, *options])
        out, err = self._capsys.readouterr()
        if code:
            message, _, remedy = err.rstrip("\n").partition("\n  ")
            raise PlaitError(message.removeprefix("error: "), remedy=remedy)
        return _plan_line(out)


def _plan_line(text: str) -> str:
    found = re.search(r"^plan (.*?)(: decided for each .*)?$", text, re.MULTILINE)
    assert found is not None, text
    return found[1]


@pytest.fixture
def doors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Doors:
    return Doors(tmp_path, monkeypatch, capsys)


VALUE_DOORS: tuple[Callable[[Doors, Given], str], ...] = (
    Doors.reader, Doors.plan, Doors.run, Doors.run_tables, Doors.explain, Doors.to_df,
)  # fmt: skip
TEXT_DOORS: tuple[Callable[[Doors, Any], str], ...] = (
    *VALUE_DOORS, Doors.cli_explain, Doors.cli_run, Doors.cli_file,
)  # fmt: skip


def _name(value: object) -> str:
    return getattr(value, "__name__", None) or repr(value)[:20]


@pytest.mark.slow
@pytest.mark.parametrize("door", TEXT_DOORS, ids=_name)
def test_a_text_means_the_same_plan_everywhere(
    doors: Doors, door: Callable[[Doors, str], str]
) -> None:
    assert {text: door(doors, text) for text in ACCEPTED} == ACCEPTED


@pytest.mark.slow
@pytest.mark.parametrize("door", TEXT_DOORS, ids=_name)
def test_a_text_that_is_no_plan_is_refused_everywhere_in_the_same_words(
    doors: Doors, door: Callable[[Doors, str], str]
) -> None:
    for text, beginning in REFUSED.items():
        with pytest.raises(PlaitError) as expected:
            read_plan(QUERY, text)
        with pytest.raises(PlaitError) as refused:
            door(doors, text)
        assert str(refused.value) == str(expected.value)
        assert str(refused.value).startswith(beginning)
        assert len(str(refused.value)) < 500


@pytest.mark.parametrize("door", VALUE_DOORS, ids=_name)
def test_a_value_is_the_same_plan_everywhere(
    doors: Doors, door: Callable[[Doors, Any], str]
) -> None:
    for given, plan in VALUES:
        assert door(doors, given) == plan
    for given, message in NO_PLANS:
        with pytest.raises(PlanError, match=f"^{re.escape(message)}"):
            door(doors, given)


@pytest.mark.slow
def test_a_running_query_reads_the_same_plans_but_takes_only_trees(doors: Doors) -> None:
    trees = {text: plan for text, plan in ACCEPTED.items() if plan.startswith("(")}
    assert {text: doors.migrate(text) for text in trees} == trees
    assert doors.migrate(TREE) == "(a (c b))"
    for text in ACCEPTED.keys() - trees.keys():
        with pytest.raises(MigrationError, match=r"cannot go over to (t?eddies) .* while it runs"):
            doors.migrate(text)
    for text in REFUSED:
        with pytest.raises(PlaitError) as expected:
            read_plan(QUERY, text)
        with pytest.raises(PlaitError, match=f"^{re.escape(str(expected.value))}$"):
            doors.migrate(text)
    with pytest.raises(MigrationError, match=r"no plan is given; .* release"):
        doors.migrate(None)


def test_whoever_is_given_nothing_may_choose() -> None:
    assert read_plan(QUERY, None, lambda query: Teddies()) == Teddies()
    assert read_plan(QUERY, None) == mjoin(QUERY)
    assert str(ASKED.engine("teddies").plan()) == "teddies (ordered)"
    known = {
        "rates": {"a": 20, "b": 20, "c": 500},
        "selectivities": {"a.k = b.k": 0.001, "b.j = c.j": 0.1},
    }
    assert str(ASKED.statistics(known).plan()) == "((a b) c)"
    assert str(ASKED.statistics(known).plan("mjoin")) == "(a b c)"


def test_where_only_a_tree_will_do() -> None:
    assert read_tree(QUERY, "(a (c b))") == TREE
    with pytest.raises(
        PlanError, match=r"^eddies \(random\) is not a tree of joins; give one such"
    ):
        read_tree(QUERY, "eddies (random)")


@pytest.mark.parametrize("router", [Eddies(policy="random"), Teddies(), Teddies(policy="lottery")])
def test_a_router_is_read_as_it_prints_itself(router: Eddies | Teddies) -> None:
    assert read_router(str(router)) == router
    assert ASKED.engine(str(router)).plan() == router


def test_streams_may_have_the_names_of_routers_and_plans() -> None:
    tables = {"teddies": TABLES["a"], "mjoin": TABLES["b"], "eddies": TABLES["c"]}
    asked = (
        plait.join(**tables)
        .on("teddies.k = mjoin.k", "mjoin.j = eddies.j")
        .within("5 seconds")
        .select("teddies.k")
    )
    assert str(asked.plan("((teddies mjoin) eddies)")) == "((teddies mjoin) eddies)"
    assert str(asked.plan("teddies")) == "teddies (ordered)"
    assert str(asked.plan("mjoin")) == "(teddies mjoin eddies)"


def test_json_deeper_than_the_stack_is_refused() -> None:
    plan: dict[str, object] = {"kind": "stream", "stream": "a"}
    for _ in range(sys.getrecursionlimit()):
        plan = {"kind": "join", "children": [plan, plan], "orders": [[1], [0]]}
    with pytest.raises(PlanError, match="the plan is nested too deeply"):
        read_plan(QUERY, {"version": 1, "plan": plan})

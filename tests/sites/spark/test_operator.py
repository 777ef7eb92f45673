"""Sites by the operator that Spark runs: mail may be lost, repeated, reordered and damaged.

What Spark does is done here by a few lines, without a JVM: batches of rows and mail, state that
counts when a batch is committed, and clocks that jump. In one deployment an application runs all
sites, in the other each has one of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.groups.routing.rows import decode_rows, encode_rows
from plait.sites.site.setup import SiteSetup
from plait.sites.spark.mail import ASIDE, MAIL, RESULTS, box_of
from plait.sites.spark.mailboxes import REPORTS
from plait.sites.spark.operator import ORDER, PACKET, ROWS, SiteOperator
from plait.testing.oracle.answer import multiset
from plait_lab.laws.hosts import definition
from plait_lab.laws.processors import MemoryStore
from plait_lab.laws.site_world import drawn_jep, drawn_sites
from plait_lab.laws.strategies.histories import History, cases, crowds

DAYS = 30 * 86_400_000_000
QUESTION = "question"


class KeyedStore:
    """The state of the key that a batch is about, as Spark's handle gives it."""

    def __init__(self, handle: dict[str, MemoryStore]) -> None:
        self._handle = handle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle["now"], name)


class Operator(SiteOperator):
    store = KeyedStore  # type: ignore[assignment]


@dataclass
class Application:
    """A query of Spark that runs some sites."""

    setup: SiteSetup
    sites: list[str]
    stores: dict[str, MemoryStore] = field(default_factory=dict)
    handle: dict[str, MemoryStore] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stores = {name: MemoryStore() for name in self.sites}
        self.operator = Operator(self.setup, dict(enumerate(self.sites)), QUESTION)
        self.operator.init(self.handle)  # type: ignore[arg-type]

    def batch(self, given: dict[str, list[dict[str, Any]]], time: int) -> Iterator[dict[str, Any]]:
        """One batch that is committed; what it sends."""
        for key, name in enumerate(self.sites):
            if given.get(name):
                self.handle["now"] = self.stores[name]
                frame = pd.DataFrame([{**row, "time": time} for row in given[name]])
                for sent in self.operator.handleInputRows((key,), iter([frame]), None):
                    yield from sent.to_dict("records")

    def attempt(self, given: dict[str, list[dict[str, Any]]], time: int) -> None:
        """One batch that dies before it is committed."""
        before = deepcopy(self.stores)
        list(self.batch(given, time))
        self.stores = before


class World:
    def __init__(self, setup: SiteSetup, chance: Random, *, divided: bool) -> None:
        names = setup.everyone if setup.deliver else setup.sites.names
        parts = [[name] for name in names] if divided else [[*names]]
        self.setup, self.chance = setup, chance
        self.applications = [Application(setup, part) for part in parts]
        self.mail: list[dict[str, Any]] = []
        self.results: Counter[Any] = Counter()
        self.reports: dict[str, dict[str, Any]] = {}
        self.notes: list[str] = []
        self.lost = 0.3

    def run(self, history: History) -> Counter[Any]:
        homes = dict(self.setup.sites.homes)
        for tables in history.tables():
            for application in self.applications:
                rows = [
                    (homes[stream], _rows(stream, batch))
                    for stream, table in tables.items()
                    for batch in table.combine_chunks().to_batches()
                    if homes[stream] in application.sites
                ]
                self._batch(application, rows)
        for _ in range(2000):
            if self._quiet():
                return self.results
            for application in self.applications:
                wake = {"kind": ORDER, "origin": None, "body": b"/box/orders/7.wake"}
                self._batch(application, [(name, wake) for name in application.sites])
        raise AssertionError(f"sites wait for ever: {self.reports}")

    def _quiet(self) -> bool:
        idle = not any(r["unanswered"] or r["waiting"] for r in self.reports.values())
        return idle and not self.mail

    def _batch(self, application: Application, rows: list[tuple[str, dict[str, Any]]]) -> None:
        given: dict[str, list[dict[str, Any]]] = {}
        came = [row for row in self.mail if row["to"] in application.sites]
        self.mail = [row for row in self.mail if row not in came or self.chance.random() < 0.2]
        for name, row in [*rows, *((row["to"], row) for row in came)]:
            given.setdefault(name, []).append(row)
        for shuffled in given.values():
            self.chance.shuffle(shuffled)
        time = self.chance.choice((10, 20, DAYS, 0))
        if self.chance.random() < 0.1:
            application.attempt(given, time)
        for sent in application.batch(given, time):
            self._sent(sent)

    def _sent(self, row: dict[str, Any]) -> None:
        assert list(row) == MAIL.names
        if row["box"] == RESULTS:
            for rows in decode_rows(row["body"]):
                self.results += multiset(pa.Table.from_batches([rows], self.setup.query.schema))
        elif row["box"] == REPORTS:
            report = json.loads(row["body"])
            self.reports[report["site"]] = report
            self.notes += report["notes"]
        elif row["box"] != ASIDE:
            (to,) = (name for name in self.setup.everyone if box_of(name) == row["box"])
            packet = {**row, "kind": PACKET, "to": to}
            if self.chance.random() < 0.1:
                packet = self._damaged(packet)
            if self.chance.random() > self.lost:
                self.mail += [packet] * self.chance.choice((1, 1, 2))

    def _damaged(self, packet: dict[str, Any]) -> dict[str, Any]:
        name = self.chance.choice(("body", "digest", "number", "channel"))
        if name == "number":
            return {**packet, "number": packet["number"] + 1}
        if name == "channel":
            return {**packet, "channel": "rows" if packet["channel"] == "messages" else "messages"}
        value = bytearray(packet[name])
        value[self.chance.randrange(len(value))] ^= 1 << self.chance.randrange(8)
        return {**packet, name: bytes(value)}


def _rows(stream: str, batch: pa.RecordBatch) -> dict[str, Any]:
    return {"kind": ROWS, "origin": stream, "body": encode_rows(batch)}


@pytest.mark.slow
@pytest.mark.parametrize("divided", [False, True], ids=["one application", "one per site"])
@settings(max_examples=15)
@given(history=st.one_of(cases(), crowds()), seed=st.integers(0, 2**32))
def test_oracle_mail_is_lost_repeated_reordered_and_damaged(
    divided: bool, history: History, seed: int
) -> None:
    chance = Random(seed)
    query = replace(history.query, lateness="own")
    history = replace(history, query=query)
    tuning = replace(history.tuning, resend_steps=chance.choice((1, 3, 32)))
    sites, plan = drawn_sites(query, chance), drawn_jep(query, chance)
    setup = SiteSetup(query, sites, plan, tuning, chance.getrandbits(64), deliver=True)
    world = World(setup, chance, divided=divided)
    found = world.run(history)
    assert found == definition(query, history.batches).results
    assert all("a damaged packet is left out" in note for note in world.notes)

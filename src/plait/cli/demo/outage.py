"""The demo's streams: requests, errors and metrics of a thousand hosts, and an outage.

At first requests are many and errors few. Then requests no longer get through, and errors flood in:
the streams have exchanged their roles, so the join order that was right is wrong. At last most of
the errors are of one host, which everybody tries again and again: a hot spot. Some requests get
through to it, and each meets all those errors, so nearly all the work is that of one key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.testing.streams.generate import generate
from plait.testing.streams.specs import Key, Payload, StreamSpec

WINDOW = 2
"""Seconds."""
QUERY = f"""\
SELECT requests.ts, requests.host, requests.millis, metrics.load, errors.allowed
FROM requests
JOIN errors  ON errors.host  = requests.host
JOIN metrics ON metrics.host = requests.host
WHERE requests.millis * metrics.load > errors.allowed
WITHIN {WINDOW} SECONDS"""

PLAN = "((errors metrics) requests)"
"""Errors are rare at first, so they are joined first."""
WATERMARK = "1 second"

_HOSTS = 1000
_MANY, _FEW, _METRICS = 15_000, 25, 10_000
"""Rows per second."""
_BATCHES, _SHORTEST = 23, 0.5
"""Batches of a run, and the seconds that one has at least."""
_HOT_HOST = "host-007"
_HOT = {"requests": 4, "errors": 11_000}
"""Rows per second of the hot host, from some time on: nearly half of all."""


@dataclass(frozen=True, slots=True)
class Outage:
    """When things happen, in seconds of event time."""

    seconds: float

    @property
    def silent(self) -> float:
        """Requests no longer get through."""
        return self.seconds * 4 / _BATCHES

    @property
    def flooded(self) -> float:
        """Errors flood in."""
        return self.seconds * 6 / _BATCHES

    @property
    def hot(self) -> float:
        """Most errors are of one host."""
        return self.seconds * 11 / _BATCHES

    @property
    def batch(self) -> float:
        """The length of a batch."""
        return max(_SHORTEST, self.seconds / _BATCHES)


def streams(course: Outage, seed: int) -> dict[str, pa.Table]:
    """The three streams, in order of arrival."""
    host = (Key("host", _HOSTS, type="string"),)
    described = (
        StreamSpec(
            "requests",
            host,
            (Payload("millis", "double", 0, 1000),),
            ((0, _MANY), (course.silent, _FEW)),
            disorder=0.8,
            out_of_order=0.2,
        ),
        StreamSpec(
            "errors",
            host,
            (Payload("allowed", "double", 900, 1000),),
            ((0, _FEW), (course.flooded, _MANY)),
            disorder=0.4,
            out_of_order=0.1,
        ),
        StreamSpec("metrics", host, (Payload("load", "double", 0, 1),), _METRICS),
    )
    tables = generate(described, course.seconds, seed)
    first = min(int(pc.min(table["ts"]).cast(pa.int64()).as_py()) for table in tables.values())
    hot = first + round(course.hot * 1e6)
    return {name: _named(table, hot, _HOT.get(name, 0), seed) for name, table in tables.items()}


def _named(table: pa.Table, hot: int, rate: float, seed: int) -> pa.Table:
    """Name the hosts; from the time `hot` on, `rate` rows a second are of the hot one."""
    numbers = pc.utf8_slice_codeunits(table["host"], 1).cast(pa.int64()).to_numpy()
    times = table["ts"].cast(pa.int64()).to_numpy()
    after = times >= hot
    if after.any():
        span = max(1, int(times.max()) - hot) / 1e6
        share = min(1.0, rate * span / int(after.sum()))
        after &= np.random.default_rng(seed).random(len(times)) < share
    names = pa.array([f"host-{n:03}" for n in range(_HOSTS)])
    named = pc.if_else(pa.array(after), _HOT_HOST, names.take(pa.array(numbers)))
    return table.set_column(table.schema.get_field_index("host"), "host", named)


def cut_arrivals(tables: Mapping[str, pa.Table], batch_seconds: float) -> list[dict[str, pa.Table]]:
    """The rows of each batch, cut where streams have come to the same time."""
    width = round(batch_seconds * 1e6)
    clocks = {
        name: np.maximum.accumulate(table.column("ts").cast(pa.int64()).to_numpy())
        for name, table in tables.items()
    }
    first = min(int(clock[0]) for clock in clocks.values() if len(clock))
    last = max(int(clock[-1]) for clock in clocks.values() if len(clock))
    ends = np.arange(first + width, last + width + 1, width)
    stops = {name: np.searchsorted(clock, ends) for name, clock in clocks.items()}
    return [
        {
            name: table.slice(begin, int(stops[name][b]) - begin)
            for name, table in tables.items()
            for begin in [int(stops[name][b - 1]) if b else 0]
        }
        for b in range(len(ends))
    ]


def within_reach(tables: Mapping[str, pa.Table], seconds: float) -> Iterator[dict[str, pa.Table]]:
    """Cut the requests into parts of some seconds, each with all rows that could join them.

    Each result has one request, so it is found in one of these parts.
    """
    times = {name: table["ts"].cast(pa.int64()) for name, table in tables.items()}
    first = min(int(pc.min(column).as_py()) for column in times.values() if len(column))
    last = max(int(pc.max(column).as_py()) for column in times.values() if len(column))
    width, reach = round(seconds * 1e6), round(WINDOW * 1e6)
    for begin in range(first, last + 1, width):
        yield {
            name: table.filter(
                pc.and_(
                    pc.greater_equal(times[name], begin - (0 if name == "requests" else reach)),
                    pc.less(times[name], begin + width + (0 if name == "requests" else reach + 1)),
                )
            )
            for name, table in tables.items()
        }

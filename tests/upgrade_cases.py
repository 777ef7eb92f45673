"""Each change of a question with which a query goes on: a row of the table in docs/upgrades.md.

With and without Spark they are compared with the definition.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from plait.api.join import Join

SINCE, BATCHES = 2, 4
"""The first batch with the second question, and how many batches there are in all."""
SECOND = 1_000_000
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("sym", pa.string()),
        ("price", pa.float64()),
        ("venue", pa.string()),
    ]
)


def rows(stream: int, batch: int) -> list[dict[str, object]]:
    """Twelve rows, within ten seconds, out of order; one of them is late, one has no symbol."""
    seconds = [10 * batch + (7 * i + 3 * stream) % 10 for i in range(11)] + [10 * batch - 15]
    return [
        {
            "ts": s * SECOND + stream,
            "sym": None if i == 5 else "AB"[(i + stream) % 2],
            "price": (5 * i + batch) % 7 + stream / 2,
            "venue": f"v{batch}",
        }
        for i, s in enumerate(seconds)
    ]


USUAL = ("left.ts", "left.sym", "left.price", "right.price AS other")
Asked = Callable[[Join], Join]


def _plain(q: Join) -> Join:
    return q.within("6 seconds")


def _same(q: Join) -> Join:
    return _plain(q).select(*USUAL)


CASES: dict[str, tuple[Asked, Asked]] = {
    "another expression": (_same, lambda q: _same(q).select("left.price * 2 AS twice")),
    "a column that was not kept": (_same, lambda q: _same(q).select("right.venue")),
    "a column less": (_same, lambda q: _plain(q).select(*USUAL[:2])),
    "a narrower window": (_same, lambda q: q.within("3 seconds").select(*USUAL)),
    "a wider window": (_same, lambda q: q.within("15 seconds").select(*USUAL)),
    "a condition": (_same, lambda q: _same(q).where("left.price > right.price")),
    "another condition": (
        lambda q: _same(q).where("left.price > right.price"),
        lambda q: _same(q).where("left.price < right.price + 1"),
    ),
    "a filter": (_same, lambda q: _same(q).where("left.venue <> 'v3'", "right.price > 2")),
    "a filter less": (lambda q: _same(q).where("right.price > 2"), _same),
    "a stricter lateness": (lambda q: _same(q).lateness("least"), _same),
    "a longer delay": (_same, lambda q: _same(q).watermark("4 seconds")),
    "a shorter delay": (_same, lambda q: _same(q).watermark("1 second")),
}
"""The first and the second question, by what changes."""

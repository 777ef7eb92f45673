"""A market to try things on: trades, quotes, orders and news of a few thousand symbols.

`MARKET` describes the streams for `plait generate`. `market` generates them and gives their
numbers a face: symbols, prices around a level per symbol, sides and headlines.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from plait.workshop.workloads.generate import generate
from plait.workshop.workloads.specs import StreamSpec, specs_from_json

MARKET = """\
{"streams": [
  {"name": "trades", "rate": [[0, 3000], [20, 6000], [40, 1500]],
   "disorder": 2, "out_of_order": 0.2,
   "keys": [{"name": "sym", "type": "string", "domain": 3000, "zipf": 0.3}],
   "payload": [{"name": "price", "type": "double", "low": 98, "high": 102},
               {"name": "size", "low": 1, "high": 1000}]},

  {"name": "quotes", "rate": [[0, 12000], [20, 8000], [40, 16000]],
   "disorder": 1, "out_of_order": 0.1, "bursts": [{"every": 15, "length": 1, "factor": 2}],
   "keys": [{"name": "sym", "type": "string", "domain": 3000, "zipf": 0.3}],
   "payload": [{"name": "bid", "type": "double", "low": 98, "high": 102},
               {"name": "spread", "type": "double", "low": 0, "high": 1}]},

  {"name": "orders", "rate": 2000, "disorder": 2, "out_of_order": 0.3,
   "keys": [{"name": "sym", "type": "string", "domain": 3000, "zipf": 0.3}],
   "payload": [{"name": "side", "low": 0, "high": 2},
               {"name": "volume", "low": 1, "high": 50}]},

  {"name": "news", "rate": [[0, 20], [30, 60]], "silences": [[10, 12]],
   "keys": [{"name": "sym", "type": "string", "domain": 3000, "zipf": 0.3}],
   "payload": [{"name": "story", "low": 0, "high": 8}]}
]}"""

QUERY = """\
SELECT t.ts, t.sym, t.price, q.ask, o.side, o.volume, n.headline
FROM trades t
JOIN quotes q ON q.sym = t.sym AND q.ts BETWEEN t.ts - INTERVAL 1 SECOND AND t.ts
JOIN orders o ON o.sym = t.sym AND o.ts BETWEEN t.ts - INTERVAL 5 SECONDS AND t.ts
JOIN news   n ON n.sym = t.sym AND n.ts BETWEEN t.ts - INTERVAL 30 SECONDS AND t.ts
WHERE t.price > q.ask"""

WATERMARK = "2 seconds"
DISORDER = (
    "Up to 30 % of the rows come out of order, by up to 2 s. The rates change at 20 s and 40 s:\n"
    "trades double, then fall to a quarter; quotes fall by a third, then double."
)

_CONSONANTS, _VOWELS = "BCDFGHJKLMNPQRSTVWXYZ", "AEIOU"
_STORIES = (
    "beats estimates",
    "cuts its outlook",
    "names a new chief executive",
    "recalls a product",
    "wins a large contract",
    "buys a rival",
    "is sued over a patent",
    "raises its dividend",
)


def specs() -> tuple[StreamSpec, ...]:
    """The streams of the market."""
    return specs_from_json(MARKET)


def market(seconds: float, seed: int) -> dict[str, pa.Table]:
    """The streams, in order of arrival."""
    tables = generate(specs(), seconds, seed)
    levels, named = {}, {}
    for name, table in tables.items():
        numbers = pc.utf8_slice_codeunits(table.column("sym"), 1).cast(pa.int64()).to_numpy()
        levels[name] = 5 + numbers * 7919 % 396
        symbols = pa.array([symbol(n) for n in range(3000)]).take(pa.array(numbers))
        named[name] = table.set_column(1, "sym", symbols)
    for name, column in (("trades", "price"), ("quotes", "bid")):
        named[name] = _scaled(named[name], column, levels[name])
    quotes = named["quotes"]
    ask = quotes.column("bid").to_numpy() + quotes.column("spread").to_numpy()
    named["quotes"] = quotes.drop_columns(["spread"]).append_column("ask", pa.array(ask.round(2)))
    named["orders"] = _worded(named["orders"], "side", "side", ("buy", "sell"))
    named["news"] = _worded(named["news"], "story", "headline", _STORIES)
    return named


def symbol(number: int) -> str:
    """The symbol with a number: four letters that can be spoken.

    >>> symbol(0), symbol(1), len({symbol(n) for n in range(3000)})
    ('BABA', 'TALU', 3000)
    """
    number = number * 7919 % 11_025
    letters = []
    for alphabet in (_VOWELS, _CONSONANTS, _VOWELS, _CONSONANTS):
        number, letter = divmod(number, len(alphabet))
        letters.append(alphabet[letter])
    return "".join(reversed(letters))


def _scaled(table: pa.Table, column: str, levels: npt.NDArray[np.int64]) -> pa.Table:
    """Per cent of a level as a price in cents."""
    prices = (table.column(column).to_numpy() * levels / 100).round(2)
    return table.set_column(table.schema.get_field_index(column), column, pa.array(prices))


def _worded(table: pa.Table, column: str, name: str, words: tuple[str, ...]) -> pa.Table:
    texts = pa.array(words).take(table.column(column).combine_chunks())
    return table.set_column(table.schema.get_field_index(column), name, texts)

"""A market to try things on, for `plait generate`: trades, quotes, orders and news."""

from __future__ import annotations

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

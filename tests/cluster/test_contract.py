from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from plait.cluster.contract import FORMAT, Contract, check_contract, contract
from plait.cluster.routing import route
from plait.errors import CheckpointMismatch
from plait.plan.examples import trades_quotes_news as query
from plait.query.query import Field, Query


def made(asked: Query = query) -> Contract:
    return contract(asked, route(asked.graph, 2))


def test_delays_and_timeouts_may_change() -> None:
    """They say what happens to rows still to come, not what the state means."""
    other = replace(query.streams[0], delay=99, idle=5)
    changed = replace(query, streams=(other, *query.streams[1:]))
    check_contract(made().to_json(), made(changed))


def test_a_changed_column_type_is_named() -> None:
    trades = query.streams[0]
    fields = tuple(Field(f.name, pa.int32()) if f.name == "size" else f for f in trades.fields)
    changed = replace(query, streams=(replace(trades, fields=fields), *query.streams[1:]))
    with pytest.raises(CheckpointMismatch, match=r"streams was .*size int64.* now .*size int32"):
        check_contract(made().to_json(), made(changed))


def test_another_selection_is_named() -> None:
    with pytest.raises(CheckpointMismatch, match=r"selected was .*; start this query with a new"):
        check_contract(made().to_json(), made(replace(query, select=query.select[:1])))


def test_another_format_is_named_before_all_else() -> None:
    newer = {**json.loads(made().to_json()), "format": FORMAT + 1, "unheard_of": 3, "keys": 7}
    with pytest.raises(CheckpointMismatch, match=rf"in format {FORMAT + 1}.*has format {FORMAT}"):
        check_contract(json.dumps(newer), made())


def test_state_without_a_contract_is_refused() -> None:
    with pytest.raises(CheckpointMismatch, match="holds no contract"):
        check_contract(None, made())

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from plait.errors import CheckpointMismatch
from plait.node.contract import (
    FORMAT,
    Contract,
    check_contract,
    contract,
    delays_before,
    routing_seed,
)
from plait.plan.examples import trades_quotes_news as query
from plait.query.expr import Column
from plait.query.query import Field, Output, Query, Stream
from plait.route.routing import route


def made(asked: Query = query, seed: int | None = None) -> Contract:
    return contract(asked, route(asked.graph, 2, seed=seed))


def before_seeds() -> str:
    """A contract as versions without seeds wrote it."""
    text = json.loads(made().to_json())
    del text["hash"], text["lateness"]
    return json.dumps(text)


def test_delays_and_timeouts_may_change() -> None:
    """They say what happens to rows still to come, not what the state means."""
    other = replace(query.streams[0], delay=99, idle=5)
    changed = made(replace(query, streams=(other, *query.streams[1:])))
    before = made().to_json()
    check_contract(before, changed)
    assert changed.delays[0] == 99 and delays_before(before, changed) == made().delays


def test_a_changed_column_type_is_named() -> None:
    news = _retyped(query.streams[2], "headline", pa.binary())
    with pytest.raises(CheckpointMismatch, match=r"streams was .*headline string.* now .*binary"):
        check_contract(made().to_json(), made(replace(query, streams=(*query.streams[:2], news))))


def test_a_column_that_the_state_does_not_hold_may_change() -> None:
    """Pack tasks check the condition on it; no processor sees it."""
    trades = _retyped(query.streams[0], "size", pa.int32())
    check_contract(made().to_json(), made(replace(query, streams=(trades, *query.streams[1:]))))


def test_a_changed_condition_on_one_stream_is_named() -> None:
    assert made().filters == ("trades.size >= 100",)
    without = replace(query, residuals=tuple(r for r in query.residuals if "size" not in str(r)))
    with pytest.raises(
        CheckpointMismatch, match=r"filters was \[trades.size >= 100\] and is now \[\]"
    ):
        check_contract(made().to_json(), made(without))
    with pytest.raises(
        CheckpointMismatch, match=r"filters was \[\] and is now \[trades.size >= 100\]"
    ):
        check_contract(made(without).to_json(), made())


def test_contracts_of_earlier_versions_say_nothing_of_filters_and_delays() -> None:
    earlier = json.loads(made().to_json())
    del earlier["filters"], earlier["delays"]
    check_contract(json.dumps(earlier), made())
    assert delays_before(json.dumps(earlier), made()) == made().delays


@pytest.mark.parametrize("text", ["", "{", "[]", '"contract"', "\0"])
def test_a_damaged_contract_is_named(text: str) -> None:
    with pytest.raises(CheckpointMismatch, match="contract in the checkpoint is damaged"):
        check_contract(text, made())


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


def _retyped(stream: Stream, column: str, type_: pa.DataType) -> Stream:
    fields = (Field(f.name, type_) if f.name == column else f for f in stream.fields)
    return replace(stream, fields=tuple(fields))


def test_a_new_checkpoint_gets_a_fresh_seed_and_keeps_it() -> None:
    seed = routing_seed([], made(), 77)
    assert seed == 77
    stored = made(seed=seed).to_json()
    assert routing_seed([stored, stored], made(), 5) == 77
    check_contract(stored, made(seed=77))


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_every_seed_is_written_and_read(seed: int) -> None:
    assert routing_seed([made(seed=seed).to_json()], made(), 5) == seed


def test_a_checkpoint_without_a_seed_goes_on_without_one() -> None:
    """Its rows are where the hash without a secret put them."""
    assert routing_seed([before_seeds()], made(), 5) is None
    check_contract(before_seeds(), made())


def test_rows_placed_by_another_seed_are_refused() -> None:
    for stored in (before_seeds(), made(seed=6).to_json()):
        with pytest.raises(CheckpointMismatch, match=r"another secret; tell .*checkpoint="):
            check_contract(stored, made(seed=5))
    with pytest.raises(CheckpointMismatch, match="another secret"):
        check_contract(made(seed=6).to_json(), made())


def test_of_several_joins_in_a_checkpoint_the_one_that_asks_the_same_tells_the_seed() -> None:
    other = replace(query, select=query.select[:1])
    stored = [made(other, 1).to_json(), made(seed=2).to_json()]
    assert routing_seed(stored, made(), 5) == 2
    assert routing_seed(stored, made(other), 5) == 1


def test_another_rule_of_lateness_is_named() -> None:
    with pytest.raises(CheckpointMismatch, match="lateness was own and is now least"):
        check_contract(made().to_json(), made(replace(query, lateness="least")))
    with pytest.raises(CheckpointMismatch, match="lateness was own and is now least"):
        check_contract(before_seeds(), made(replace(query, lateness="least")))


def test_names_that_are_quoted_now_were_not_in_older_checkpoints() -> None:
    trades = query.streams[0]
    fields = (*trades.fields, Field("net price", pa.int64()))
    streams = (replace(trades, fields=fields), *query.streams[1:])
    select = (*query.select, Output("net", Column(trades.name, "net price")))
    asked = replace(query, streams=streams, select=select)
    text = json.loads(made(asked).to_json())
    assert "`net price` int64" in text["streams"][0]
    for name in ("streams", "selected"):
        text[name] = [part.replace("`", "") for part in text[name]]
    with pytest.raises(CheckpointMismatch, match="streams was"):
        check_contract(json.dumps(text), made(asked))
    del text["hash"], text["lateness"]
    check_contract(json.dumps(text), made(asked))

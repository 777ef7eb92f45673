from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.errors import CheckpointMismatch
from plait.groups.routing.routing import route
from plait.node.durable.contract import FORMAT, Contract, contract
from plait.node.durable.header import Header
from plait.node.durable.upgrade import (
    AGREED,
    GOES_ON,
    REFUSED,
    changes,
    check_contract,
    code_of,
    nearest,
    watermarks_before,
)
from plait.query.bounds import Bounds
from plait.query.dialect import Dialect
from plait.query.expr import Column
from plait.query.query import NEVER_LATE, Field, Output, Query, Stream
from plait.query.sql import parse_output
from plait.testing.examples import clique
from plait.testing.examples import trades_quotes_news as query


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
    check_contract(made().to_json(), changed)
    assert changed.delays[0] == 99


@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=6),
    st.lists(st.integers(0, 100), min_size=6, max_size=6),
)
def test_a_watermark_is_as_far_as_it_has_ever_been(delays: list[int], newest: list[int]) -> None:
    """Whatever delays were asked for one after the other, and none of them holds for ever."""
    header, furthest = Header((newest[0],) * 3), BEFORE_ALL_TIMES
    for delay, now in zip(delays, sorted(newest), strict=False):
        streams = tuple(replace(s, delay=delay) for s in query.streams)
        header = replace(header, newest=(now,) * 3)
        text = made(replace(query, streams=streams)).to_json()
        furthest = max(furthest, now - delay)
        assert watermarks_before(text, header) == [furthest] * 3
        header = replace(header, floors=tuple(watermarks_before(text, header)))
    assert header.newest == (now,) * 3, "rows alone move it"


def test_a_changed_column_type_is_named() -> None:
    news = _retyped(query.streams[2], "headline", pa.binary())
    with pytest.raises(CheckpointMismatch, match=r"news.headline was string and is now binary"):
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
    assert watermarks_before(json.dumps(earlier), Header((5, 6, 7), floors=(1, 2, 3))) == [1, 2, 3]


@pytest.mark.parametrize("text", ["", "{", "[]", '"contract"', "\0"])
def test_a_damaged_contract_is_named(text: str) -> None:
    with pytest.raises(CheckpointMismatch, match="contract in the checkpoint is damaged"):
        check_contract(text, made())


def test_another_selection_is_named() -> None:
    with pytest.raises(CheckpointMismatch, match=r"output was .*; tell the query where"):
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


def test_rows_placed_by_another_seed_are_refused() -> None:
    for stored in (before_seeds(), made(seed=6).to_json()):
        with pytest.raises(CheckpointMismatch, match=r"another secret; tell .*checkpoint="):
            check_contract(stored, made(seed=5))
    with pytest.raises(CheckpointMismatch, match="another secret"):
        check_contract(made(seed=6).to_json(), made())


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
    with pytest.raises(CheckpointMismatch, match="stream was"):
        check_contract(json.dumps(text), made(asked))
    del text["hash"], text["lateness"]
    check_contract(json.dumps(text), made(asked))


def judged(before: Query, after: Query) -> dict[str, tuple[str, str, str]]:
    """What was, what is now and the verdict, by part."""
    found = changes(made(before).to_json(), made(after))
    assert all(change.answer for change in found)
    return {change.part: (change.was, change.now, change.verdict) for change in found}


def test_nothing_changes_if_the_question_is_the_same() -> None:
    assert not changes(made().to_json(), made()) and not changes(before_seeds(), made())


def test_windows_may_become_narrower_and_wider() -> None:
    other = replace(query, bounds=_scaled(query.bounds, 2))
    (wider,) = changes(made().to_json(), made(other))
    (narrower,) = changes(made(other).to_json(), made())
    assert wider.verdict == narrower.verdict == AGREED
    assert "the old window needs no longer are missing" in wider.answer
    assert "missing" not in narrower.answer
    assert (wider.was, wider.now) == (narrower.now, narrower.was)


def test_columns_that_were_not_kept_are_null_in_earlier_rows() -> None:
    more = Output("size", Column("trades", "size"))
    found = judged(query, replace(query, select=(*query.select, more)))
    assert found == {
        "trades.size": ("not kept", "int64", AGREED),
        "output": ("[]", "[trades.size AS size]", AGREED),
    }
    fewer = judged(replace(query, select=(*query.select, more)), query)
    assert fewer["trades.size"] == ("int64", "not kept", AGREED)


def test_another_java_is_another_output_where_numbers_are_written() -> None:
    """Java 19 writes shorter digits: results change where a number becomes text, and only there."""

    def asked(text: str, *, shortest: bool) -> Query:
        dialect = Dialect("UTC", shortest=shortest)
        return replace(query, select=tuple(parse_output(text, query.streams, dialect)))

    for text in ("CAST(trades.price AS STRING) AS p", "round(trades.price, -22) AS p"):
        found = judged(asked(text, shortest=False), asked(text, shortest=True))
        assert set(found) == {"output"} and found["output"][2] == AGREED
        assert "java17_" in found["output"][0] and "java17_" not in found["output"][1]
    same = "trades.price + 1 AS p, trades.sym"
    assert not judged(asked(same, shortest=False), asked(same, shortest=True))


def test_the_order_of_the_output_is_part_of_it() -> None:
    found = judged(query, replace(query, select=query.select[::-1]))
    assert set(found) == {"output"} and found["output"][0] != found["output"][1]


def test_other_streams_event_times_and_keys_are_refused() -> None:
    asked = made()
    trades, *others = asked.streams
    for other, part in (
        (replace(asked, streams=(trades.replace("trades(", "deals("), *others)), "stream"),
        (replace(asked, streams=(f"{trades}2", *others)), "stream"),
        (made(clique(2)), "streams"),
        (replace(asked, keys=asked.keys[:1]), "keys"),
        (replace(asked, shares=(64, 2)), "shares"),
        (replace(asked, processors=3, shares=(3,)), "processors"),
    ):
        (found,) = changes(asked.to_json(), other)
        assert (found.part, found.verdict) == (part, REFUSED), found
        with pytest.raises(CheckpointMismatch, match=f"{part} was"):
            check_contract(asked.to_json(), other)


def test_lateness_may_only_become_stricter() -> None:
    least = replace(query, lateness="least")
    assert judged(least, query)["lateness"] == ("least", "own", AGREED)
    assert judged(query, least)["lateness"] == ("own", "least", REFUSED)


def test_delays_go_on_without_a_word_unless_there_is_none_any_longer() -> None:
    def delayed(micros: int) -> Query:
        return _with_first(replace(query.streams[0], delay=micros))

    part = "the delay of trades"
    assert judged(delayed(1_000_000), delayed(0)) == {part: ("1 s", "0 s", GOES_ON)}
    assert judged(delayed(0), delayed(1_000_000)) == {part: ("0 s", "1 s", GOES_ON)}
    assert judged(delayed(0), delayed(NEVER_LATE)) == {part: ("0 s", "unlimited", REFUSED)}
    assert judged(delayed(NEVER_LATE), delayed(0)) == {part: ("unlimited", "0 s", GOES_ON)}


def test_a_version_that_did_not_say_its_columns_goes_on_with_the_old_question_first() -> None:
    text = json.loads(made().to_json())
    del text["columns"], text["matrix"]
    check_contract(json.dumps(text), made())
    narrow = replace(query, bounds=_scaled(query.bounds, 2), select=query.select[:1])
    found = changes(json.dumps(text), made(narrow))
    unsaid = [change for change in found if change.verdict == REFUSED]
    assert {change.part for change in unsaid} == {"streams", "bounds"}
    assert all("run the old question for a batch" in change.answer for change in unsaid)


def test_of_several_joins_the_nearest_is_the_one_that_asks_the_same() -> None:
    other = replace(query, select=query.select[:1])
    stored = [made(other, 1).to_json(), made(seed=2).to_json()]
    assert nearest(stored, made()) == stored[1] and nearest(stored, made(other)) == stored[0]
    wider = made(replace(query, bounds=_scaled(query.bounds, 2)))
    assert nearest(stored, wider) == stored[0], "both could go on with it"
    assert nearest(stored, made(replace(query, lateness="least"))) is None


def test_a_code_names_one_change_and_no_other() -> None:
    other = made(replace(query, select=query.select[:1]))
    codes = {code_of(a.to_json(), b) for a in (made(), other) for b in (made(), other)}
    assert len(codes) == 4 and all(len(code) == 8 for code in codes)


def _scaled(bounds: Bounds, times: int) -> Bounds:
    return Bounds(tuple(tuple(times * d for d in row) for row in bounds.matrix))


def _with_first(stream: Stream) -> Query:
    return replace(query, streams=(stream, *query.streams[1:]))

"""Descriptions of streams: what they accept, and how they refuse the rest."""

from __future__ import annotations

import json

import pytest

from plait.testing.streams.specs import (
    Burst,
    Key,
    Payload,
    SpecError,
    StreamSpec,
    specs_from_json,
)

FULL = {
    "name": "trades",
    "time": "at",
    "rate": [[0, 100], [30, 500.5]],
    "keys": [{"name": "sym", "domain": 50, "zipf": 1.1, "type": "string", "domains": [[10, 5]]}],
    "payload": [{"name": "price", "type": "double", "low": 1, "high": 9, "nulls": 0.1}],
    "disorder": 2,
    "out_of_order": 0.25,
    "bursts": [{"every": 10, "length": 1, "factor": 5}],
    "silences": [[5, 6]],
    "grain": 0.001,
    "null_times": 0.01,
}


def test_json_says_the_same_as_python() -> None:
    assert specs_from_json(json.dumps([FULL])) == (
        StreamSpec(
            "trades",
            (Key("sym", 50, 1.1, "string", domains=((10.0, 5),)),),
            (Payload("price", "double", 1, 9, 0.1),),
            ((0.0, 100.0), (30.0, 500.5)),
            "at",
            2,
            0.25,
            (Burst(10, 1, 5),),
            ((5.0, 6.0),),
            0.001,
            0.01,
        ),
    )


def test_one_rate_is_a_schedule_of_one_step() -> None:
    assert StreamSpec("a", rate=5) == StreamSpec("a", rate=((0, 5),))


WRONG = [
    ('{"streams": []}', "streams is no list of streams"),
    ("[{", "the description is not JSON"),
    ('{"stream": []}', "stream is unknown"),
    ("[3]", "streams[0] is 3"),
    ("[{}]", "streams[0].name is missing"),
    ('[{"name": ""}]', "streams[0].name is ''"),
    ('[{"name": "a", "rats": 3}]', "streams[0].rats is unknown; did you mean 'rate'?"),
    ('[{"name": "a"}, {"name": "a"}]', "streams[1].name 'a' is taken"),
    ('[{"name": "a", "rate": -1}]', "streams[0].rate[0] is -1"),
    ('[{"name": "a", "rate": "fast"}]', "streams[0].rate is 'fast'"),
    ('[{"name": "a", "rate": [[5, 1], [2, 1]]}]', "streams[0].rate[1] begins before"),
    ('[{"name": "a", "rate": [5]}]', "streams[0].rate[0] is 5"),
    ('[{"name": "a", "disorder": true}]', "streams[0].disorder is True"),
    ('[{"name": "a", "out_of_order": 1.5}]', "streams[0].out_of_order is 1.5"),
    ('[{"name": "a", "silences": [[3, 1]]}]', "streams[0].silences[0] is 1"),
    ('[{"name": "a", "keys": {"name": "k"}}]', "streams[0].keys is {'name': 'k'}"),
    ('[{"name": "a", "keys": [{"domain": 5}]}]', "streams[0].keys[0].name is missing"),
    ('[{"name": "a", "keys": [{"name": "k", "type": "int"}]}]', "streams[0].keys[0].type is 'int'"),
    ('[{"name": "a", "keys": [{"name": "k", "domain": 1.5}]}]', "streams[0].keys[0].domain is 1.5"),
    ('[{"name": "a", "keys": [{"name": "ts"}]}]', "streams[0].keys and payload have two columns"),
    ('[{"name": "a", "payload": [{"name": "v", "high": 0}]}]', "streams[0].payload[0].high is 0"),
    ('[{"name": "a", "bursts": [{"every": 0, "length": 1, "factor": 1}]}]',
     "streams[0].bursts[0].every is 0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG, ids=lambda x: x[:60])
def test_errors_name_the_field(text: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        specs_from_json(text)
    assert str(caught.value).startswith(message)

from __future__ import annotations

import json

import pytest

from plait.groups.routing.routing import route
from plait.node.durable.contract import Contract, contract, processors_before, routing_seed
from plait.testing.examples import trades_quotes_news as query


def made(seed: int | None = None) -> Contract:
    return contract(query, route(query.graph, 2, seed=seed))


def test_a_new_checkpoint_gets_a_fresh_seed_and_keeps_it() -> None:
    seed = routing_seed(None, 77)
    assert seed == 77
    stored = made(seed=seed).to_json()
    assert routing_seed(stored, 5) == 77


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_every_seed_is_written_and_read(seed: int) -> None:
    assert routing_seed(made(seed=seed).to_json(), 5) == seed


def test_a_checkpoint_without_a_seed_goes_on_without_one() -> None:
    """Its rows are where the hash without a secret put them."""
    text = json.loads(made().to_json())
    del text["hash"]
    assert routing_seed(json.dumps(text), 5) is None


def test_the_number_of_processors_at_the_beginning_is_told() -> None:
    assert processors_before(made().to_json()) == 2

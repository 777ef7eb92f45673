"""Every host gives the answer of the one definition: results and rows set aside."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait_lab.laws.hosts import HOSTS, assert_lawful_on
from plait_lab.laws.strategies.histories import History, cases, crowds


@pytest.mark.slow
@pytest.mark.parametrize("host", HOSTS)
@settings(max_examples=60)
@given(history=st.one_of(cases(late=True), crowds(late=True)), seed=st.integers(0, 2**32))
def test_oracle_every_host(host: str, history: History, seed: int) -> None:
    assert_lawful_on(host, history, seed)

"""The streams that arrive at a site: what is admitted, late or refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.engine.intake.times import AFTER_ALL_TIMES, BEFORE_ALL_TIMES
from plait.errors import SiteError
from plait.groups.routing.packets import lean
from plait.sites.site.admission import HomeStreams
from plait.sites.site.setup import SiteOutcome, SiteReport
from plait.testing.examples import clique

QUERY = clique(2)


def home(ended: bool = False) -> HomeStreams:
    return HomeStreams("oslo", QUERY, lean(QUERY), {"a": BEFORE_ALL_TIMES}, ended)


def rows(*times: int) -> pa.Table:
    keys = pa.array([1] * len(times), pa.int64())
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": keys})


def test_rows_are_admitted_in_the_order_of_time_and_counted() -> None:
    outcome, streams = SiteOutcome(SiteReport("oslo")), home()
    admitted = streams.admit({"a": rows(9, 3, 5)}, outcome)["a"]
    assert admitted.rows.column("ts").cast(pa.int64()).to_pylist() == [3, 5, 9]
    assert admitted.newest == 9
    assert streams.newest == {"a": BEFORE_ALL_TIMES}, "what may still be refused changes nothing"
    streams.advance({"a": admitted})
    assert streams.newest == {"a": 9}
    assert outcome.report.rows == {"a": 3}


def test_rows_of_other_streams_and_after_the_end_are_refused() -> None:
    with pytest.raises(SiteError, match="rows of 'b' have come to the site oslo"):
        home().admit({"b": rows(1)}, SiteOutcome(SiteReport("oslo")))
    with pytest.raises(SiteError, match="rows of a have come after its end"):
        home(ended=True).admit({"a": rows(1)}, SiteOutcome(SiteReport("oslo")))
    assert home(ended=True).watermark("a") == AFTER_ALL_TIMES

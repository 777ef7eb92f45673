"""Formats of dates and times: what is read, and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.query.values.datetime_formats import date_format, parse_timestamp
from plait.query.values.forms import Unfit

FAR = pa.array([253_402_300_800_000_000, -62_198_755_200_000_000], pa.timestamp("us"))


@pytest.mark.parametrize(
    "pattern", ["yy", "MMMM", "w", "VV", "yyyy[ HH]", "'open", "SSSSSSSSSS", "G", "D"]
)
def test_unknown_formats_are_refused(pattern: str) -> None:
    with pytest.raises(Unfit, match="before the join"):
        date_format(FAR, pa.scalar(pattern))
    with pytest.raises(Unfit, match="before the join"):
        parse_timestamp(pa.array(["x"]), pa.scalar(pattern))


@pytest.mark.parametrize("pattern", ["yyyy yyyy", "MMM", "E", "dMyyyy", "hh"])
def test_formats_that_are_only_written(pattern: str) -> None:
    with pytest.raises(Unfit):
        parse_timestamp(pa.array(["x"]), pa.scalar(pattern))


def test_years_of_other_lengths() -> None:
    assert date_format(FAR, pa.scalar("yyyy-MM-dd")).to_pylist() == ["+10000-01-01", "-0001-01-01"]
    texts = pa.array(["+10000-01-01", "-0001-01-01", "10000-01-01", "2024-13-01", "2024-02-30"])
    read = parse_timestamp(texts, pa.scalar("yyyy-MM-dd"))
    assert read.slice(2).null_count == 3
    assert read.slice(0, 2).cast(pa.int64()).equals(FAR.cast(pa.int64()))


def test_quotes_and_fractions() -> None:
    moment = pa.array([1_500_000], pa.timestamp("us"))
    assert date_format(moment, pa.scalar("ss.SSS 'o''clock' ''")).to_pylist() == [
        "01.500 o'clock '"
    ]
    assert date_format(moment, pa.scalar("")).to_pylist() == [""]
    (read,) = parse_timestamp(pa.array(["00:00:01.5"]), pa.scalar("HH:mm:ss.SSS"))
    assert read.value == 1_500_000

"""`plait generate`: seeded streams in files."""

from __future__ import annotations

import sys
from pathlib import Path

from plait.cli.inputs import read_text
from plait.cli.market import MARKET
from plait.cli.show import say, size
from plait.errors import PlaitError, did_you_mean
from plait.testing.generate import Format, write_streams
from plait.testing.specs import specs_from_json

PRESETS = {"market": MARKET}


def generate_streams(
    spec: Path | None,
    preset: str | None,
    example: bool,
    seconds: float,
    seed: int,
    out: Path | None,
    format_: Format,
) -> None:
    """Write the streams that a description describes, or print a description."""
    if example:
        say(MARKET)
        return
    specs = specs_from_json(_description(spec, preset))
    if out is None:
        raise PlaitError("where to?", remedy="name a directory: --out DIR")
    if seconds <= 0:
        raise PlaitError(f"--seconds is {seconds:g}", remedy="give a number above 0")
    paths = write_streams(specs, seconds, seed, out, format_)
    for path in paths.values():
        say(f"{path}  {size(path.stat().st_size)}")


def _description(spec: Path | None, preset: str | None) -> str:
    if (spec is None) == (preset is None):
        raise PlaitError(
            "no description is given" if spec is None else "two descriptions are given",
            remedy="give a file (plait generate --example prints one), or --preset market",
        )
    if preset is not None:
        if preset not in PRESETS:
            raise PlaitError(f"there is no preset {preset!r}", remedy=did_you_mean(preset, PRESETS))
        return PRESETS[preset]
    assert spec is not None
    return sys.stdin.read() if str(spec) == "-" else read_text(spec)

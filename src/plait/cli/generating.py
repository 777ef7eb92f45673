"""`plait generate`: write seeded streams to files."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from plait.cli.inputs import read_text, too_deep
from plait.cli.outputs import make_directory
from plait.cli.show import say
from plait.errors import OutputExists, PlaitError, did_you_mean
from plait.figures import size
from plait.machine.drafts import Draft, writing
from plait.machine.names import file_name
from plait.testing.streams.generate import Format, write_streams
from plait.testing.streams.specs import StreamSpec, distinct_names, specs_from_json

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
"""A market to try things on: trades, quotes, orders and news."""
PRESETS = {"market": MARKET}


def generate_streams(
    text: str, seconds: float, seed: int, out: Path | None, format_: Format
) -> None:
    """Write the streams that a description in JSON describes."""
    try:
        specs = distinct_names(specs_from_json(text))
    except RecursionError:
        raise too_deep("the description") from None
    if out is None:
        raise PlaitError("where to?", remedy="name a directory: --out DIR")
    if not (math.isfinite(seconds) and seconds > 0):
        raise PlaitError(f"--seconds is {seconds:g}", remedy="give a finite number above 0")
    for path in written(specs, seconds, seed, out, format_):
        say(f"{path}  {size(path.stat().st_size)}")


def written(
    specs: Sequence[StreamSpec], seconds: float, seed: int, out: Path, format_: Format
) -> list[Path]:
    """Write a file per stream into a directory; all of them appear, or none."""
    for spec in specs:
        if file_name(spec.name) != spec.name:
            raise PlaitError(f"the name {spec.name!r} is no file name", remedy="rename the stream")
    targets = {spec.name: out / f"{spec.name}.{format_}" for spec in specs}
    with ExitStack() as made:
        make_directory(out, made)
        drafts = {}
        for name, path in targets.items():
            try:
                drafts[name] = Draft(path)
            except OutputExists as error:
                error.remedy = "choose another directory or remove it"
                raise
            made.callback(drafts[name].abandon)
        with writing(out), TemporaryDirectory(prefix=".plait-", suffix=".tmp", dir=out) as folder:
            with _fitting(seconds):
                paths = write_streams(specs, seconds, seed, folder, format_)
            for name, path in paths.items():
                os.replace(path, drafts[name].temporary)
        for draft in drafts.values():
            draft.publish()
    return list(targets.values())


@contextmanager
def _fitting(seconds: float) -> Iterator[None]:
    """Turns what happens to arrays of impossible sizes into an error."""
    try:
        yield
    except (MemoryError, OverflowError) as error:
        raise PlaitError(
            f"the rows of {seconds:g} seconds do not fit into memory: {error}",
            remedy="give fewer --seconds, or lower rates",
        ) from None


def description(spec: Path | None, preset: str | None) -> str:
    """Read the description that was named: a file, standard input or a preset."""
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

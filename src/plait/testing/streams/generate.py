"""Seeded streams for tests, benchmarks and demos.

*What comes out.* Rows in the order of their arrival. Event times are a Poisson process whose rate
follows the spec; a row out of order arrives up to `disorder` after its event time, so no row is
ever older than the newest one before it by more than `disorder`: with a watermark delay of that
much, none is late, however the stream is cut into batches.

*Determinism.* Each column of each stream draws from its own generator, seeded with the seed and
the two names: another stream or column changes none of the others.

>>> spec = StreamSpec("a", keys=(Key("k", domain=3),), rate=1000)
>>> tables = generate([spec], seconds=2, seed=1)
>>> tables["a"].column_names, 1800 < tables["a"].num_rows < 2200
(['ts', 'k'], True)
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from plait.errors import OutputExists
from plait.testing.streams.specs import (
    TIME_TYPE,
    TYPES,
    Key,
    Payload,
    SpecError,
    StreamSpec,
    distinct_names,
)

START = 1_704_067_200_000_000
"""Second 0 of every stream: 2024-01-01 00:00:00, in microseconds."""

Format = Literal["parquet", "csv", "jsonl"]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def generate(specs: Iterable[StreamSpec], seconds: float, seed: int) -> dict[str, pa.Table]:
    """One table per stream, its rows in order of arrival."""
    return {spec.name: _stream(spec, seconds, seed) for spec in distinct_names(specs)}


def write_streams(
    specs: Iterable[StreamSpec],
    seconds: float,
    seed: int,
    out_dir: str | Path,
    format: Format = "parquet",
) -> dict[str, Path]:
    """Generate, and write one file `NAME.FORMAT` per stream; the paths by stream."""
    writers = {"parquet": _write_parquet, "csv": _write_csv, "jsonl": _write_jsonl}
    if format not in writers:
        raise SpecError("format", f"is {format!r}", remedy=f"choose one of {', '.join(writers)}")
    specs = distinct_names(specs)
    paths = {spec.name: Path(out_dir) / f"{spec.name}.{format}" for spec in specs}
    for path in paths.values():
        if path.exists():
            raise OutputExists(f"{path} exists", remedy="choose another directory or remove it")
    Path(out_dir).mkdir(parents=True, exist_ok=True)
    for spec in specs:
        writers[format](_stream(spec, seconds, seed), paths[spec.name])
    return paths


def _stream(spec: StreamSpec, seconds: float, seed: int) -> pa.Table:
    event = _event_times(spec, seconds, _rng(seed, spec.name, "time"))
    event = _as_they_arrive(spec, event, _rng(seed, spec.name, "arrival"))
    moment = (event - START) / 1e6
    columns = {spec.time: _time_column(spec, event, _rng(seed, spec.name, "null times"))}
    for key in spec.keys:
        columns[key.name] = _key_column(key, moment, _rng(seed, spec.name, "key", key.name))
    for payload in spec.payload:
        rng = _rng(seed, spec.name, "payload", payload.name)
        columns[payload.name] = _payload_column(payload, len(event), rng)
    return pa.table(columns, schema=spec.schema)


def _rng(seed: int, *names: str) -> np.random.Generator:
    return np.random.default_rng([seed, *(zlib.crc32(name.encode()) for name in names)])


def _event_times(spec: StreamSpec, seconds: float, rng: np.random.Generator) -> Ints:
    """Sorted event times: a Poisson process of rate 1, its clock stretched by the spec's rate."""
    edges, rates = _rate_steps(spec, seconds)
    expected = np.concatenate([[0.0], np.cumsum(rates * np.diff(edges))])
    total = float(expected[-1])
    room = int(total + 10 * total**0.5 + 10)
    ticks = np.cumsum(rng.standard_exponential(room))
    while len(ticks) and ticks[-1] < total:
        ticks = np.concatenate([ticks, ticks[-1] + np.cumsum(rng.standard_exponential(room))])
    ticks = ticks[: np.searchsorted(ticks, total)]
    micros = (np.interp(ticks, expected, edges) * 1e6).astype(np.int64)
    if (grain := round(spec.grain * 1e6)) > 1:
        micros -= micros % grain
    return micros + START


def _rate_steps(spec: StreamSpec, seconds: float) -> tuple[Floats, Floats]:
    """The instants at which the rate changes, and the rates between them."""
    begins = np.array([at for at, _ in spec.rates])
    levels = np.array([0.0, *(rate for _, rate in spec.rates)])
    edges = [np.array([0.0, seconds]), begins, np.array(spec.silences, dtype=float).ravel()]
    for burst in spec.bursts:
        starts = np.arange(0.0, seconds, burst.every)
        edges += [starts, starts + min(burst.length, burst.every)]
    instants = np.unique(np.clip(np.concatenate(edges), 0.0, seconds))
    middle = (instants[:-1] + instants[1:]) / 2
    rates = levels[np.searchsorted(begins, middle, side="right")]
    for burst in spec.bursts:
        rates = np.where(middle % burst.every < burst.length, rates * burst.factor, rates)
    for begin, end in spec.silences:
        rates = np.where((begin <= middle) & (middle < end), 0.0, rates)
    return instants, rates


def _as_they_arrive(spec: StreamSpec, event: Ints, rng: np.random.Generator) -> Ints:
    bound = round(spec.disorder * 1e6)
    if not (bound and spec.out_of_order):
        return event
    delay = rng.integers(1, bound, size=len(event), endpoint=True)
    delay[rng.random(len(event)) >= spec.out_of_order] = 0
    return event[np.argsort(event + delay, kind="stable")]


def _time_column(spec: StreamSpec, event: Ints, rng: np.random.Generator) -> pa.Array:
    return pa.array(event, mask=_nulls(spec.null_times, len(event), rng)).cast(TIME_TYPE)


def _key_column(key: Key, moment: Floats, rng: np.random.Generator) -> pa.Array:
    if key.type == "sequence":
        return pa.array(np.arange(len(moment)))
    sizes = np.array([key.domain, *(size for _, size in key.domains)])
    step = np.searchsorted([at for at, _ in key.domains], moment, side="right")
    chance = rng.random(len(moment))
    numbers = np.empty(len(moment), dtype=np.int64)
    for k, size in enumerate(sizes):
        here = slice(None) if len(sizes) == 1 else step == k
        numbers[here] = _key_numbers(int(size), key.zipf, chance[here])
    numbers += (moment * key.churn).astype(np.int64)
    return _typed(numbers, key.type, _nulls(key.nulls, len(moment), rng))


def _key_numbers(domain: int, zipf: float, chance: Floats) -> Ints:
    if zipf == 0.0:
        return np.minimum((chance * domain).astype(np.int64), domain - 1)
    weights = np.arange(1, domain + 1, dtype=np.float64) ** -zipf
    upto = np.cumsum(weights)
    found = np.searchsorted(upto, chance * upto[-1], side="right")
    return np.asarray(np.minimum(found, domain - 1), dtype=np.int64)


def _payload_column(payload: Payload, rows: int, rng: np.random.Generator) -> pa.Array:
    nulls = _nulls(payload.nulls, rows, rng.spawn(1)[0])
    if payload.type == "sequence":
        return pa.array(np.arange(rows), mask=nulls)
    if payload.type == "double":
        return pa.array(rng.uniform(payload.low, payload.high, rows), mask=nulls)
    return _typed(rng.integers(payload.low, payload.high, rows), payload.type, nulls)


def _nulls(fraction: float, rows: int, rng: np.random.Generator) -> npt.NDArray[np.bool_] | None:
    return rng.random(rows) < fraction if fraction else None


def _typed(numbers: Ints, type_: str, nulls: npt.NDArray[np.bool_] | None) -> pa.Array:
    """The values with these numbers in a column type: different numbers, different values."""
    plain = pa.array(numbers, mask=nulls)
    target = TYPES[type_]
    if type_ in ("string", "binary"):
        return pc.binary_join_element_wise("k", plain.cast(pa.string()), "").cast(target)
    if type_ == "date":
        return pc.add(plain, START // 86_400_000_000).cast(pa.int32()).cast(target)
    if type_ == "timestamp":
        return pc.add(pc.multiply(plain, 1_000_000), START).cast(target)
    if type_ == "bool":
        return pc.equal(pc.bit_wise_and(plain, 1), 1)
    return plain.cast(target)


def _write_parquet(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path)


def _write_csv(table: pa.Table, path: Path) -> None:
    import pyarrow.csv as pcsv

    pcsv.write_csv(table, path)


def _write_jsonl(table: pa.Table, path: Path) -> None:
    """One JSON object per line; times in ISO 8601, decimals and binaries as strings."""
    texts = table.select([])
    for field in table.schema:
        texts = texts.append_column(field.name, _json_column(table.column(field.name)))
    with path.open("w", encoding="utf-8") as out:
        for batch in texts.to_batches(max_chunksize=65_536):
            out.writelines(f"{json.dumps(row)}\n" for row in batch.to_pylist())


def _json_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        return pc.strftime(column, "%Y-%m-%dT%H:%M:%S")
    plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return column if plain or pa.types.is_boolean(column.type) else column.cast(pa.string())

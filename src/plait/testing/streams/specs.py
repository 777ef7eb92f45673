"""What a generated stream is like: rates, keys, disorder, bursts and gaps, as values and as JSON.

>>> spec = StreamSpec("trades", keys=(Key("sym", domain=50, zipf=1.1, type="string"),), rate=200)
>>> spec.rate, spec.schema.names
(((0.0, 200.0),), ['ts', 'sym'])
>>> specs_from_json('[{"name": "trades", "keys": [{"name": "sym", "domain": 0}]}]')
Traceback (most recent call last):
...
plait.testing.streams.specs.SpecError: streams[0].keys[0].domain is 0; ...
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import pyarrow as pa

from plait.errors import PlaitError, did_you_mean

TYPES: Mapping[str, pa.DataType] = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "decimal": pa.decimal128(21, 2),
    "sequence": pa.int64(),
}
"""What a column may hold; `sequence` numbers the rows from 0 as they arrive."""

TIME_TYPE = pa.timestamp("us")
Schedule = tuple[tuple[float, float], ...]
"""Steps `(from second, value)`: each value holds until the next step begins."""


class SpecError(PlaitError):
    """A description of a stream that makes no sense, with the field that does not."""

    def __init__(self, field: str, problem: str, *, remedy: str = "") -> None:
        super().__init__(f"{field} {problem}".strip(), remedy=remedy)
        self.field = field
        self.problem = problem

    def inside(self, path: str) -> SpecError:
        """The same error, seen from further out."""
        joint = "" if self.field.startswith("[") or not self.field else "."
        return SpecError(f"{path}{joint}{self.field}", self.problem, remedy=self.remedy)


@dataclass(frozen=True, slots=True)
class Key:
    """A join attribute: `domain` distinct keys, drawn evenly or by Zipf's law.

    Key number 0 is the most frequent one in every stream, so that hot keys meet. `domains` are
    steps `(from second, distinct keys)` that replace `domain` later on: selectivity over time.
    With `churn`, so many keys per second go out of use for good, and as many new ones come.
    """

    name: str
    domain: int = 100
    zipf: float = 0.0
    type: str = "int64"
    nulls: float = 0.0
    domains: tuple[tuple[float, int], ...] = ()
    churn: float = 0.0

    def __post_init__(self) -> None:
        _check_name("name", self.name)
        _check_type(self.type)
        _whole("domain", self.domain, 1)
        _number("zipf", self.zipf, 0.0)
        _number("churn", self.churn, 0.0)
        _fraction("nulls", self.nulls)
        steps = _steps("domains", self.domains, lambda f, x: float(_whole(f, x, 1)))
        object.__setattr__(self, "domains", tuple((at, int(size)) for at, size in steps))


@dataclass(frozen=True, slots=True)
class Payload:
    """A column that is not joined on: values spread evenly from `low` up to, not with, `high`."""

    name: str
    type: str = "int64"
    low: int = 0
    high: int = 1_000_000
    nulls: float = 0.0

    def __post_init__(self) -> None:
        _check_name("name", self.name)
        _check_type(self.type)
        _whole("low", self.low, -(2**62))
        _whole("high", self.high, self.low + 1)
        _fraction("nulls", self.nulls)


@dataclass(frozen=True, slots=True)
class Burst:
    """Every `every` seconds, `length` seconds at `factor` times the rate."""

    every: float
    length: float
    factor: float

    def __post_init__(self) -> None:
        _number("every", self.every, 1e-6)
        _number("length", self.length, 0.0)
        _number("factor", self.factor, 0.0)


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One generated stream; all times are in seconds from its start.

    `rate` is rows per second, a number or steps. `out_of_order` is the fraction of rows that
    arrive late, by up to `disorder` seconds. `silences` are spans `(from, to)` without rows.
    Event times are rounded down to multiples of `grain`, which makes ties.
    """

    name: str
    keys: tuple[Key, ...] = ()
    payload: tuple[Payload, ...] = ()
    rate: float | Schedule = ((0.0, 100.0),)
    time: str = "ts"
    disorder: float = 0.0
    out_of_order: float = 0.0
    bursts: tuple[Burst, ...] = ()
    silences: Schedule = ()
    grain: float = 0.0
    null_times: float = 0.0

    def __post_init__(self) -> None:
        _check_name("name", self.name)
        _check_name("time", self.time)
        steps = ((0.0, self.rate),) if isinstance(self.rate, int | float) else self.rate
        rate = _steps("rate", steps, lambda f, x: _number(f, x, 0.0))
        object.__setattr__(self, "rate", rate)
        spans = _pairs("silences", self.silences)
        for i, (begin, end) in enumerate(spans):
            _number(f"silences[{i}]", begin, 0.0)
            _number(f"silences[{i}]", end, begin)
        object.__setattr__(self, "silences", spans)
        for name in ("disorder", "grain"):
            _number(name, getattr(self, name), 0.0)
        for name in ("out_of_order", "null_times"):
            _fraction(name, getattr(self, name))
        for name in ("keys", "payload", "bursts"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        names = [self.time, *(k.name for k in self.keys), *(p.name for p in self.payload)]
        if twice := next((n for n in names if names.count(n) > 1), None):
            raise SpecError("keys", f"and payload have two columns {twice!r}", remedy="rename one")

    @property
    def schema(self) -> pa.Schema:
        """The columns: the event time, the keys, the payload."""
        columns = [(self.time, TIME_TYPE), *((k.name, TYPES[k.type]) for k in self.keys)]
        return pa.schema([*columns, *((p.name, TYPES[p.type]) for p in self.payload)])

    @property
    def rates(self) -> Schedule:
        """The rate as steps."""
        return ((0.0, self.rate),) if isinstance(self.rate, int | float) else self.rate


def specs_from_json(text: str | bytes) -> tuple[StreamSpec, ...]:
    """The streams that a JSON text describes: a list, or an object with the list in `streams`.

    The fields are those of `StreamSpec`, `Key`, `Payload` and `Burst`.

    >>> specs_from_json('{"streams": [{"name": "a", "rate": [[0, 10], [5, 90]]}]}')[0].rates
    ((0.0, 10.0), (5.0, 90.0))
    """
    try:
        value = json.loads(text)
    except ValueError as e:
        raise SpecError("the description", f"is not JSON: {e}") from None
    if isinstance(value, dict):
        if unknown := next((k for k in value if k != "streams"), None):
            raise SpecError(unknown, "is unknown", remedy="the only field here is 'streams'")
        value = value.get("streams")
    if not isinstance(value, list) or not value:
        raise SpecError("streams", "is no list of streams", remedy='write [{"name": ...}, ...]')
    specs = _each("streams", value, lambda item: _read(StreamSpec, item, _NESTED))
    names = [s.name for s in specs]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise SpecError(f"streams[{i}].name", f"{name!r} is taken", remedy="rename it")
    return specs


T = TypeVar("T")
_NESTED: Mapping[str, Callable[[object], object]] = {
    "keys": lambda items: _each("keys", items, lambda item: _read(Key, item)),
    "payload": lambda items: _each("payload", items, lambda item: _read(Payload, item)),
    "bursts": lambda items: _each("bursts", items, lambda item: _read(Burst, item)),
}


def _each(field: str, items: object, read: Callable[[object], T]) -> tuple[T, ...]:
    if not isinstance(items, list):
        raise SpecError(field, f"is {items!r}", remedy="give a list")
    found = []
    for i, item in enumerate(items):
        try:
            found.append(read(item))
        except SpecError as e:
            raise e.inside(f"{field}[{i}]") from None
    return tuple(found)


def _read(
    kind: type[T], value: object, nested: Mapping[str, Callable[[object], object]] | None = None
) -> T:
    if not isinstance(value, dict):
        raise SpecError("", f"is {value!r}", remedy="give an object with fields")
    its_fields = fields(kind)  # type: ignore[arg-type]  # every kind is a dataclass
    known = [f.name for f in its_fields]
    for name in value:
        if name not in known:
            raise SpecError(name, "is unknown", remedy=did_you_mean(name, known))
    for f in its_fields:
        if f.name not in value and f.default is f.default_factory:
            raise SpecError(f.name, "is missing")
    given: dict[str, Any] = {k: (nested or {}).get(k, _same)(v) for k, v in value.items()}
    return kind(**given)


def _same(value: object) -> object:
    return value


def _check_name(field: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise SpecError(field, f"is {value!r}", remedy="give a name")


def _check_type(value: object) -> None:
    if not isinstance(value, str) or value not in TYPES:
        raise SpecError("type", f"is {value!r}", remedy=did_you_mean(str(value), TYPES))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(field: str, value: Any, least: float) -> float:
    if not _is_number(value) or value < least:
        raise SpecError(field, f"is {value!r}", remedy=f"give a number of at least {least:g}")
    return float(value)


def _whole(field: str, value: Any, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise SpecError(field, f"is {value!r}", remedy=f"give a whole number of at least {least}")
    return value


def _fraction(field: str, value: Any) -> None:
    if not _is_number(value) or not 0 <= value <= 1:
        raise SpecError(field, f"is {value!r}", remedy="give a fraction between 0 and 1")


def _pairs(field: str, value: object) -> tuple[tuple[Any, Any], ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise SpecError(field, f"is {value!r}", remedy="give a list of pairs")
    for i, pair in enumerate(value):
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise SpecError(f"{field}[{i}]", f"is {pair!r}", remedy="give a pair [second, value]")
    return tuple((a, b) for a, b in value)


def _steps(field: str, value: object, check: Callable[[str, Any], float]) -> Schedule:
    """Steps in order of their times, checked one by one."""
    steps = _pairs(field, value)
    before = -1.0
    for i, (at, what) in enumerate(steps):
        _number(f"{field}[{i}]", at, 0.0)
        check(f"{field}[{i}]", what)
        if at <= before:
            raise SpecError(f"{field}[{i}]", "begins before its predecessor", remedy="sort them")
        before = at
    return tuple((float(at), float(what)) for at, what in steps)


def distinct_names(specs: Iterable[StreamSpec]) -> tuple[StreamSpec, ...]:
    """The specs, or the error that names a stream described twice."""
    found: dict[str, StreamSpec] = {}
    for spec in specs:
        if spec.name in found:
            raise SpecError("name", f"{spec.name!r} is given to two streams", remedy="rename one")
        found[spec.name] = spec
    return tuple(found.values())

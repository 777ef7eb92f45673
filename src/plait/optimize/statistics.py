"""Statistics of streams: values with a unit, an age and a confidence; unknown stays unknown.

*Rates* are rows per second of a stream as they arrive. *Selectivities* are probabilities: of an
equality `a.x = b.y`, that a tuple of a and a tuple of b agree in it; of any other condition, that
a combination satisfies it.

*Within a key class* several equalities say one thing: all members have one value. The probability
that k tuples agree is the product over the k - 1 most probable equalities that tie them together
(a maximum spanning tree). With one selectivity s for all pairs that is s^(k-1), and with uniform
keys of which one attribute's values contain the other's it is exact too.

*Joint* selectivities say more than independent predicates could: the probability that tuples of a
set of streams which lie close enough in time agree in everything that the query asks of them. Where
one is known, it is used for that set; larger sets are worked out from it.

*What is missing* is assumed, and every assumption is reported with the plan it led to:

1. a rate: the geometric mean of the known rates, or one row per second if none is known;
2. the selectivity of an equality: that of the most probable known equality of its class; if none
   is known, one partner: as many distinct keys as the fullest of the windows involved has rows;
3. the selectivity of another condition: 1, it lets everything pass;
4. the length of a batch: one second.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from plait.errors import StatisticsError, UnknownStream, did_you_mean
from plait.query.durations import micros
from plait.query.expr import Column, streams_of
from plait.query.graph import KeyClass
from plait.query.names import tokens, unquoted
from plait.query.query import Query

ROWS_PER_SECOND, PROBABILITY, SECONDS = "rows/s", "probability", "s"
_UNITS = (ROWS_PER_SECOND, PROBABILITY, SECONDS)
_TABLES = {
    "rates": ROWS_PER_SECOND,
    "selectivities": PROBABILITY,
    "joint": PROBABILITY,
    "at_most": PROBABILITY,
}
_ENTRIES = (*_TABLES, "batch")
_EQUALS = re.compile(r"=(?=(?:[^`]*`[^`]*`)*[^`]*$)")
"""An equals sign that is not in the name of a column."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its unit, its age in seconds, and its confidence (0 to 1).

    >>> print(Estimate(250.0, "rows/s", age=5.0, confidence=0.9))
    250 rows/s, 5 s old, confidence 0.9
    >>> Estimate(1.5, "probability")
    Traceback (most recent call last):
    plait.errors.StatisticsError: a probability of 1.5; give a number from 0 to 1
    """

    value: float
    unit: str
    age: float | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.unit not in _UNITS:
            raise StatisticsError(f"there is no unit {self.unit!r}", remedy=", ".join(_UNITS))
        if math.isnan(self.value):
            raise StatisticsError(
                f"a value of NaN {self.unit}", remedy="leave out what is not known"
            )
        if self.unit == PROBABILITY and not 0 <= self.value <= 1:
            raise StatisticsError(
                f"a probability of {self.value:g}", remedy="give a number from 0 to 1"
            )
        if not (self.value >= 0 and math.isfinite(self.value)):
            raise StatisticsError(
                f"a value of {self.value:g} {self.unit}", remedy="give a finite number >= 0"
            )
        if self.age is not None and not self.age >= 0:
            raise StatisticsError(f"an age of {self.age} s", remedy="give seconds >= 0")
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            raise StatisticsError(
                f"a confidence of {self.confidence}", remedy="give a number from 0 to 1"
            )

    def __str__(self) -> str:
        unit = "" if self.unit == PROBABILITY else f" {self.unit}"
        age = "" if self.age is None else f", {self.age:g} s old"
        trust = "" if self.confidence is None else f", confidence {self.confidence:g}"
        return f"{self.value:g}{unit}{age}{trust}"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Estimates by name: rates by stream, selectivities by condition, joint ones by streams.

    The streams of a joint selectivity are separated by spaces: "trades quotes news". Names that are
    not plain words are quoted as `explain` shows them: "a.`x y` = b.k".
    """

    rates: Mapping[str, Estimate] = field(default_factory=dict)
    selectivities: Mapping[str, Estimate] = field(default_factory=dict)
    batch: Estimate | None = None
    joint: Mapping[str, Estimate] = field(default_factory=dict)
    at_most: Mapping[str, Estimate] = field(default_factory=dict)
    """Upper bounds of joint selectivities that are uncertain."""

    @classmethod
    def of(
        cls,
        rates: Mapping[str, float],
        selectivities: Mapping[str, float] | None = None,
        *,
        batch: float | None = None,
        joint: Mapping[str, float] | None = None,
    ) -> Statistics:
        """Statistics from plain numbers.

        >>> Statistics.of({"a": 20}, {"a.k = b.k": 0.1}).rates["a"].value
        20.0
        """
        return read_statistics(
            {"rates": rates, "selectivities": selectivities or {}, "joint": joint or {}}
            | ({} if batch is None else {"batch": batch})
        )


def read_statistics(data: object, where: str = "statistics") -> Statistics:
    """Read statistics from plain data; every error names the entry.

    A value is a number, or an object with `value`, and perhaps `unit`, `age` (seconds, or a
    duration such as "5 s") and `confidence`; null means that it is not known.
    """
    if not isinstance(data, Mapping):
        raise StatisticsError(f"{where} is not an object", remedy='write {"rates": {...}}')
    for key in data:
        if key not in _ENTRIES:
            raise StatisticsError(
                f"{where} has an entry {key!r}", remedy=did_you_mean(str(key), _ENTRIES)
            )
    tables: dict[str, dict[str, Estimate]] = {}
    for key, unit in _TABLES.items():
        table = data.get(key) or {}
        if not isinstance(table, Mapping):
            raise StatisticsError(f"{where}: {key} is not an object", remedy="give values by name")
        found = {str(n): _estimate(v, unit, f"{where}: {key} of {n}") for n, v in table.items()}
        tables[key] = {name: estimate for name, estimate in found.items() if estimate is not None}
    batch = _estimate(data.get("batch"), SECONDS, f"{where}: batch")
    return Statistics(batch=batch, **tables)


def statistics_to_dict(known: Statistics) -> dict[str, Any]:
    """Write statistics as plain data that `read_statistics` reads.

    >>> known = Statistics.of({"a": 20}, batch=0.5)
    >>> read_statistics(statistics_to_dict(known)) == known
    True
    """

    def plain(estimate: Estimate) -> dict[str, Any]:
        parts = {"value": estimate.value, "age": estimate.age, "confidence": estimate.confidence}
        return {name: part for name, part in parts.items() if part is not None}

    tables = {
        name: {of: plain(estimate) for of, estimate in getattr(known, name).items()}
        for name in _TABLES
    }
    return tables | ({} if known.batch is None else {"batch": plain(known.batch)})


def _estimate(given: Any, unit: str, where: str) -> Estimate | None:
    if given is None:
        return None
    parts = dict(given) if isinstance(given, Mapping) else {"value": given}
    if parts.get("value") is None:
        return None
    for key in parts:
        if key not in ("value", "unit", "age", "confidence"):
            raise StatisticsError(
                f"{where} has an entry {key!r}", remedy="known: value, unit, age, confidence"
            )
    if isinstance(parts.get("age"), str):
        parts["age"] = micros(parts["age"], what=f"{where}, age") / 1e6
    if parts.get("unit", unit) != unit:
        raise StatisticsError(f"{where} is in {parts['unit']}", remedy=f"give it in {unit}")
    numbers = {k: v for k, v in parts.items() if k != "unit" and v is not None}
    for key, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise StatisticsError(f"{where}: {key} is {value!r}, not a number")
    try:
        return Estimate(unit=unit, **{k: float(v) for k, v in numbers.items()})
    except StatisticsError as error:
        raise StatisticsError(f"{where}: {error.message}", remedy=error.remedy) from None


# --- for one query --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Resolved:
    """The statistics of one query with nothing missing, and the assumptions."""

    rates: tuple[float, ...]
    """Rows per second that are stored: those that satisfy the conditions on their stream alone."""
    pairs: tuple[Mapping[tuple[int, int], float], ...]
    """For each key class, the selectivity of each pair (i < j) of its streams."""
    residuals: tuple[float, ...]
    batch: float
    assumptions: tuple[str, ...] = ()
    joint: Mapping[int, float] = field(default_factory=dict)
    """By set of streams, a bit mask, the probability that they agree in everything."""


def resolve(query: Query, statistics: Statistics) -> Resolved:
    """Check statistics against a query, and fill in assumptions for missing ones.

    >>> from plait.testing.examples import chain
    >>> found = resolve(chain(3), Statistics.of({"a": 20, "b": 20}, {"a.a = b.a": 0.1}))
    >>> found.rates
    (20.0, 20.0, 20.0)
    >>> for assumption in found.assumptions:
    ...     print(assumption)
    the rate of c is not known: taken as 20 rows/s, the mean of the others
    the selectivity of b.b = c.b is not known: taken as 0.005, one partner per lookup
    the length of a batch is not known: taken as 1 s
    """
    assumptions: list[str] = []
    arriving = _rates(query, statistics, assumptions)
    equalities, conditions = _selectivities(query, statistics)
    rates = list(arriving)
    residuals = []
    for r, expr in enumerate(query.residuals):
        known = conditions.get(r)
        if known is None:
            assumptions.append(f"the selectivity of {expr} is not known: taken as 1")
        residuals.append(1.0 if known is None else known)
        if len(streams := streams_of(expr)) == 1:
            rates[query.index(next(iter(streams)))] *= residuals[-1]
    pairs = tuple(
        _pairs(query, key_class, equalities.get(k, {}), rates, assumptions)
        for k, key_class in enumerate(query.graph.classes)
    )
    batch = statistics.batch.value if statistics.batch is not None else 1.0
    if statistics.batch is None:
        assumptions.append("the length of a batch is not known: taken as 1 s")
    joint = {streams_mask(query, names): e.value for names, e in statistics.joint.items()}
    for names in statistics.at_most:
        streams_mask(query, names)
    return Resolved(tuple(rates), pairs, tuple(residuals), batch, tuple(assumptions), joint)


def streams_mask(query: Query, names: str) -> int:
    """The streams of a joint selectivity as a bit mask."""
    found = 0
    for name in map(unquoted, tokens(names)):
        if name not in query.names:
            raise UnknownStream(
                f"there is a joint selectivity of {names!r}, but {name!r} is no stream of the "
                "query",
                remedy=did_you_mean(name, query.names),
            )
        found |= 1 << query.index(name)
    if found.bit_count() < 2:
        raise StatisticsError(
            f"there is a joint selectivity of {names!r}", remedy="name two or more streams"
        )
    return found


def _rates(query: Query, statistics: Statistics, assumptions: list[str]) -> list[float]:
    for name in statistics.rates:
        if name not in query.names:
            raise UnknownStream(
                f"there are statistics for {name!r}, which is not a stream of the query",
                remedy=did_you_mean(name, query.names),
            )
    known = [e.value for e in statistics.rates.values() if e.value > 0]
    usual = float(f"{math.exp(sum(map(math.log, known)) / len(known)):.6g}") if known else 1.0
    why = "the mean of the others" if known else "none is known"
    rates = []
    for name in query.names:
        if name not in statistics.rates:
            assumptions.append(
                f"the rate of {name} is not known: taken as {usual:.6g} rows/s, {why}"
            )
        rates.append(statistics.rates[name].value if name in statistics.rates else usual)
    return rates


def _selectivities(
    query: Query, statistics: Statistics
) -> tuple[dict[int, dict[tuple[int, int], float]], dict[int, float]]:
    """The given selectivities: by class and pair of streams, and by residual."""
    texts = {str(expr): r for r, expr in enumerate(query.residuals)}
    members = {
        str(Column(query.names[i], column)): (k, i)
        for k, c in enumerate(query.graph.classes)
        for i, names in enumerate(c.columns)
        for column in names
    }
    equalities: dict[int, dict[tuple[int, int], float]] = {}
    conditions: dict[int, float] = {}
    for text, estimate in statistics.selectivities.items():
        if text in texts:
            conditions[texts[text]] = estimate.value
            continue
        ends = [members.get(side.strip()) for side in _EQUALS.split(text)]
        left, right = ends if len(ends) == 2 else (None, None)
        if left is None or right is None or left[0] != right[0] or left[1] == right[1]:
            known = [*map(str, query.equalities), *texts]
            raise StatisticsError(
                f"there is a selectivity of {text!r}, which is not a condition of the query",
                remedy=did_you_mean(text, known),
            )
        pair = (min(left[1], right[1]), max(left[1], right[1]))
        equalities.setdefault(left[0], {})[pair] = estimate.value
    return equalities, conditions


def _pairs(
    query: Query,
    key_class: KeyClass,
    known: Mapping[tuple[int, int], float],
    rates: list[float],
    assumptions: list[str],
) -> Mapping[tuple[int, int], float]:
    members = sorted(key_class.streams)
    missing = [(i, j) for i in members for j in members if i < j and (i, j) not in known]
    if not missing:
        return dict(known)
    if known and _spanning(members, known):
        # All members are tied together already: the others follow, and are no more probable.
        return {**dict.fromkeys(missing, min(known.values())), **known}
    if known:
        value, why = max(known.values()), "as the others of its key"
    else:
        fullest = max(rates[i] * max(query.bounds.matrix[i]) / 1e6 for i in members)
        value, why = 1 / max(1.0, fullest), "one partner per lookup"
    names = " = ".join(str(Column(query.names[i], key_class.columns[i][0])) for i in members)
    assumptions.append(f"the selectivity of {names} is not known: taken as {value:.4g}, {why}")
    return {**dict.fromkeys(missing, value), **known}


def _spanning(members: list[int], known: Mapping[tuple[int, int], float]) -> bool:
    """Whether the known pairs connect all members."""
    group = {members[0]}
    while True:
        more = {x for pair in known if set(pair) & group for x in pair} - group
        if not more:
            return set(members) <= group
        group |= more

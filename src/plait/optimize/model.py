"""The cost model: what a plan needs of CPU and memory per unit of time.

*Mathematics.* (Equations 1 to 7 of the paper, for any jtree, join graph and bounds.) Let ρ(U) be
the product of the rates of the streams U and of the selectivities of all predicates among them, and
let V be the volumes of the bounds (see `volumes.py`). Per second

    made(U)      = ρ(U) · V(U)             combinations of U appear
    stored(U)    = ρ(U) · ∫ life           of them are kept at any time
    matches(U,C) = ρ(U) · V(U, last in C)  of them appear by a tuple that came through C

A join with the children C_1 .. C_k does, for each child C: one insertion and one deletion per
made(C); and along its probe order, G_0 = C, G_j = G_(j-1) ∪ T_j: matches(G_(j-1), C) lookups, which
look at the rows of T_j that have the key or share its bucket, and find matches(G_j, C) pairs. With
the paper's three constants this is equations 1, 2 and 4, since V(U) = n W^(n-1) for a window W;
the memory is equations 3 and 5.

*Additivity.* What a join does depends on the stream sets of its children and on its probe orders,
not on how the children are made. So a plan costs the sum over its joins, and a cheaper subplan
never makes the whole dearer: dynamic programming over stream sets is exact.

*Assumptions.* Independent predicates, uniform keys, stationary Poisson arrivals. What a residual
keeps is known only as a probability.

Sets of streams are bit masks here. A model is a value: it only remembers what it has computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from operator import add, attrgetter

from plait.optimize.costs import Costs
from plait.optimize.footprint import base_bytes, combined_bytes, payload_bytes
from plait.optimize.statistics import Resolved, Statistics, resolve
from plait.optimize.volumes import DRAWS, Volumes, volumes_of
from plait.plan.jtree import Leaf, Node
from plait.query.expr import streams_of
from plait.query.query import Query


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds per second, and the tuples and bytes kept.

    >>> Cost(1, 2, 3) + Cost(1, 1, 1)
    Cost(cpu=2, tuples=3, bytes=4)
    """

    cpu: float
    tuples: float
    bytes: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.cpu + other.cpu, self.tuples + other.tuples, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class Operations:
    """What is done per second; `seconds` prices it."""

    arrivals: float = 0.0
    inserts: float = 0.0
    deletes: float = 0.0
    probes: float = 0.0
    visits: float = 0.0
    matches: float = 0.0
    carried: float = 0.0
    results: float = 0.0
    """Values of results: rows times columns."""
    calls: float = 0.0
    combined: float = 0.0
    upkeep: float = 0.0
    intakes: float = 0.0
    outputs: float = 0.0
    """Columns of results gathered, however many rows at a time."""

    def __add__(self, other: Operations) -> Operations:
        return Operations(*map(add, _numbers(self), _numbers(other)))

    @property
    def counted(self) -> float:
        """The operations that an engine's counters know."""
        return self.inserts + self.deletes + self.probes + self.visits + self.matches

    def seconds(self, costs: Costs) -> float:
        """The CPU time of these operations."""
        return (
            self.arrivals * costs.arrive
            + self.inserts * costs.insert
            + self.deletes * costs.delete
            + self.probes * costs.probe
            + self.visits * costs.visit
            + self.matches * costs.match
            + self.carried * costs.carry
            + self.results * costs.result
            + self.calls * costs.call
            + self.combined * costs.combine
            + self.upkeep * costs.upkeep
            + self.intakes * costs.intake
            + self.outputs * costs.output
        )


_numbers = attrgetter(*(f.name for f in fields(Operations)))


def bits(streams: int) -> Iterable[int]:
    """The members of a set, ascending."""
    while streams:
        lowest = streams & -streams
        yield lowest.bit_length() - 1
        streams ^= lowest


_LONGEST_GAP = 1e9
"""Seconds, some thirty years."""

_FEW = 8
"""The most streams of a set that is computed from all its parts."""


class Model:
    """The costs of one query under given statistics.

    >>> from plait.optimize.costs import PAPER
    >>> from plait.testing.examples import chain
    >>> from plait.plan.jtree import mjoin
    >>> known = Statistics.of({"a": 20, "b": 20, "c": 20}, {"a.a = b.a": 0.05, "b.b = c.b": 0.5})
    >>> model = Model(chain(3), known, PAPER)
    >>> model.cost(mjoin(chain(3))).tuples
    600.0
    """

    def __init__(
        self,
        query: Query,
        statistics: Statistics,
        costs: Costs,
        *,
        exact_batches: bool = False,
        draws: int = DRAWS,
    ) -> None:
        self.query = query
        self.costs = costs
        self.known: Resolved = resolve(query, statistics)
        self.size = len(query.streams)
        self.all = (1 << self.size) - 1
        rates = self.known.rates
        gaps = [0.0 if costs.call == 0 or r == 0 else _gap(r) for r in rates]
        lags = [s.lag / 1e6 + gap for s, gap in zip(query.streams, gaps, strict=True)]
        batch = self.known.batch if exact_batches else 0.0
        self.volumes: Volumes = volumes_of(query.bounds.matrix, lags, batch=batch, draws=draws)
        graph = query.graph
        self.adjacent = tuple(sum(1 << j for j in graph.neighbours(i)) for i in range(self.size))
        self._classes = tuple(sum(1 << i for i in c.streams) for c in graph.classes)
        self._keys = tuple(graph.classes_of(i) for i in range(self.size))
        self._single = tuple(
            next(iter(pairs.values())) if len(set(pairs.values())) == 1 else None
            for pairs in self.known.pairs
        )
        self._conditions = [
            (sum(1 << query.index(s) for s in streams_of(expr)), kept)
            for expr, kept in zip(query.residuals, self.known.residuals, strict=True)
            if len(streams_of(expr)) > 1
        ]
        self._even = self.volumes.symmetric and costs.call == 0
        self._only_matches = costs.probe == costs.visit == costs.carry == costs.call == 0
        self._payload = [payload_bytes(query, i) for i in range(self.size)]
        self._width = len(query.select)
        self._states: dict[tuple[int, tuple[int, ...]], Cost] = {}
        self.densities: dict[int, float] = {1 << i: r for i, r in enumerate(rates)}
        for streams, agree in self.known.joint.items():
            self.densities[streams] = agree * math.prod(rates[i] for i in bits(streams))
        self._neighbours: dict[int, int] = {1 << i: a for i, a in enumerate(self.adjacent)}
        self._made: dict[int, float] = {}
        self._prices: dict[tuple[int, ...], float] = {}
        self._agree: dict[tuple[int, int], float] = {}
        self._class_masks = {1 << i: sum(1 << k for k in own) for i, own in enumerate(self._keys)}

    # -- sets of streams

    def classes_of(self, stream: int) -> tuple[int, ...]:
        """The key classes of a stream."""
        return self._keys[stream]

    def neighbours(self, streams: int) -> int:
        """The streams that share a key with the set, the set itself aside."""
        found = self._neighbours.get(streams)
        if found is None:
            found = 0
            for i in bits(streams):
                found |= self.adjacent[i]
            found &= ~streams
            self._neighbours[streams] = found
        return found

    def density(self, streams: int) -> float:
        """ρ(U): the product of rates and selectivities, or what is known of the set as a whole."""
        found = self.densities.get(streams)
        if found is None:
            if self.known.joint and streams.bit_count() <= _FEW:
                found = self._from_known(streams)
            else:
                found = self._with_one_more(streams, streams & -streams)
            self.densities[streams] = found
        return found

    def _with_one_more(self, streams: int, one: int) -> float:
        """The density of a set from that of the set without one stream, if that is independent."""
        rest = streams ^ one
        return self.density(rest) * self.densities[one] * self._factor(rest, one)

    def _from_known(self, streams: int) -> float:
        """The geometric mean over the streams to leave out, if some rest is known over those."""
        ends = [1 << i for i in bits(streams) if (streams ^ 1 << i) & self.neighbours(1 << i)]
        known = [one for one in ends if streams ^ one in self.known.joint]
        found = [self._with_one_more(streams, one) for one in known or ends or [streams & -streams]]
        if not all(found):
            return 0.0
        return math.exp(sum(map(math.log, found)) / len(found))

    def _factor(self, streams: int, one: int) -> float:
        """How much the predicates between a set and one more stream let pass."""
        factor = 1.0
        for k in self._keys[one.bit_length() - 1]:
            members = streams & self._classes[k]
            if members:
                single = self._single[k]
                factor *= single if single is not None else self._tied(k, members, one)
        both = streams | one
        for needs, kept in self._conditions:
            if needs & one and needs & ~both == 0:
                factor *= kept
        return factor

    def _tied(self, key_class: int, members: int, one: int) -> float:
        """The selectivity of a further stream of a class whose pairs differ."""
        before = self._agreement(key_class, members)
        return self._agreement(key_class, members | one) / before if before else 0.0

    def _agreement(self, key_class: int, members: int) -> float:
        """The probability that all members agree: the most probable tree of pairs."""
        key = (key_class, members)
        if key not in self._agree:
            pairs = self.known.pairs[key_class]
            left = list(bits(members))
            group, product = [left.pop(0)], 1.0
            while left:
                best, nearest = max((pairs[min(i, j), max(i, j)], j) for i in group for j in left)
                product *= best
                left.remove(nearest)
                group.append(nearest)
            self._agree[key] = product
        return self._agree[key]

    def agreement(self, left: int, right: int) -> float:
        """How much the predicates between two sets let pass."""
        apart = self.density(left) * self.density(right)
        return self.density(left | right) / apart if apart else 0.0

    def made(self, streams: int) -> float:
        """Combinations that appear per second."""
        found = self._made.get(streams)
        if found is None:
            found = self._made[streams] = self.density(streams) * self.volumes.total(streams)
        return found

    def stored(self, streams: int) -> float:
        """Combinations that are kept at any time."""
        return self.density(streams) * self.volumes.live(streams)

    def held(self, streams: int) -> float:
        """Rows that are physically there, on average."""
        return self.density(streams) * self.volumes.held(streams)

    def allocated(self, streams: int) -> float:
        """Rows that there is room for: those of the longest life."""
        return self.made(streams) * self.volumes.longest(streams)

    # -- steps and joins

    def step(self, gathered: int, target: int, part: int) -> Operations:
        """One probe of a path that began with a new tuple of `part`, per second."""
        both = gathered | target
        probes = self.density(gathered) * self.volumes.last(gathered, part)
        matches = self.density(both) * self.volumes.last(both, part)
        visits = probes * self._visits(gathered, target, part)
        carried = probes * gathered.bit_count() + matches * both.bit_count()
        return Operations(
            probes=probes,
            visits=visits,
            matches=matches,
            carried=carried,
            calls=self._calls(probes),
        )

    def _visits(self, gathered: int, target: int, part: int) -> float:
        """Rows that one lookup looks at: of its key, strangers in its bucket, and one too old."""
        rows = self.held(target)
        longest = self.volumes.longest(target)
        reach = min(self.volumes.reach(gathered, part, target), longest)
        recent = reach / longest if longest > 0 else 0.0
        same = self._same_key(gathered, target) + 1 / _buckets(self.allocated(target))
        older = rows * (1 - recent) * same
        return rows * recent * same + (1 - math.exp(-older))

    def _same_key(self, gathered: int, target: int) -> float:
        """The probability that a row of the target has the key that is looked up."""
        chance = self.agreement(gathered, target)
        for needs, kept in self._conditions:
            if needs & gathered and needs & target and needs & ~(gathered | target) == 0 and kept:
                chance /= kept
        return chance

    def _calls(self, tuples: float) -> float:
        """Steps per second that have something to do, of batches that come as known."""
        batch = self.known.batch
        return (1 - math.exp(-tuples * batch)) / batch if batch > 0 else tuples

    def step_price(self, gathered: int, target: int, part: int) -> float:
        """The CPU seconds per second of one probe: `step`, priced."""
        if not self._even:
            key = (gathered, target, part)
            found = self._prices.get(key)
            if found is None:
                found = self._prices[key] = self._price(gathered, target, part)
            return found
        pair = (gathered, target)
        found = self._prices.get(pair)
        if found is None:
            found = self._prices[pair] = self._price(gathered, target, gathered & -gathered)
        return found * part.bit_count()

    def _price(self, gathered: int, target: int, part: int) -> float:
        costs, volumes = self.costs, self.volumes
        both = gathered | target
        matches = self.density(both) * volumes.last(both, part)
        price = matches * (costs.match + costs.carry * both.bit_count())
        if self._only_matches:
            return price
        probes = self.density(gathered) * volumes.last(gathered, part)
        price += probes * (costs.probe + costs.carry * gathered.bit_count())
        price += probes * self._visits(gathered, target, part) * costs.visit
        return price + self._calls(probes) * costs.call

    def keeping(self, streams: int) -> Operations:
        """What entering a state costs: insertion and deletion, and arrival for a stream."""
        made = self.made(streams)
        if streams & (streams - 1) == 0:
            intakes = self._calls(made)
            return Operations(arrivals=made, inserts=made, deletes=made, intakes=intakes)
        return Operations(
            inserts=made,
            deletes=made,
            carried=2 * made * streams.bit_count(),
            calls=self._calls(made),
            combined=made,
            upkeep=1 / self.known.batch if self.known.batch > 0 else made,
        )

    def shared(self, gathered: int, target: int) -> int:
        """The key classes that a lookup uses, as a bit mask."""
        return self._class_mask(gathered) & self._class_mask(target)

    def _class_mask(self, streams: int) -> int:
        found = self._class_masks.get(streams)
        if found is None:
            lowest = streams & -streams
            found = self._class_mask(streams ^ lowest) | self._class_masks[lowest]
            self._class_masks[streams] = found
        return found

    def join_operations(self, parts: Sequence[int], orders: Sequence[Sequence[int]]) -> Operations:
        """What a join of these stream sets does per second, its children's own work aside."""
        total = Operations()
        for c, order in enumerate(orders):
            total += self.keeping(parts[c])
            gathered = parts[c]
            for k in order:
                total += self.step(gathered, parts[k], parts[c])
                gathered |= parts[k]
        return total

    def results_cost(self, streams: int) -> float:
        """The CPU of the pairs that become combinations of a set, whatever join finds them."""
        costs = self.costs
        return self.made(streams) * (costs.match + costs.carry * streams.bit_count())

    def state_cost(self, streams: int, indexes: Iterable[int]) -> Cost:
        """Memory of a state, indexed by some sets of key classes, and the CPU of keeping it."""
        key = (streams, tuple(sorted(indexes)))
        found = self._states.get(key)
        if found is None:
            found = self._states[key] = Cost(
                self.keeping(streams).seconds(self.costs),
                self.stored(streams),
                self._bytes(streams, key[1]),
            )
        return found

    def _bytes(self, streams: int, indexes: tuple[int, ...]) -> float:
        rows = self.allocated(streams)
        if streams & (streams - 1):
            return combined_bytes(streams.bit_count(), rows, len(indexes))
        stream = streams.bit_length() - 1
        single = sum(by.bit_count() == 1 for by in indexes)
        keys = len(self._keys[stream])
        return base_bytes(self._payload[stream], keys, rows, len(indexes), single)

    def join_cost(self, parts: Sequence[int], orders: Sequence[Sequence[int]]) -> Cost:
        """What a join of these stream sets costs, its children's own joins aside."""
        used: list[set[int]] = [set() for _ in parts]
        cpu = 0.0
        for c, order in enumerate(orders):
            gathered = parts[c]
            for k in order:
                cpu += self.step_price(gathered, parts[k], parts[c])
                used[k].add(self.shared(gathered, parts[k]))
                gathered |= parts[k]
        cpu += self._output(parts)
        tuples = size = 0.0
        for part, indexes in zip(parts, used, strict=True):
            state = self.state_cost(part, indexes)
            cpu += state.cpu
            tuples += state.tuples
            size += state.bytes
        return Cost(cpu, tuples, size)

    def output_operations(self, parts: Sequence[int]) -> Operations:
        """What results cost beside being found, if these are the parts of the root.

        A batch's results come apart by the child of the root through which they were found.
        """
        whole = sum(parts)
        if whole != self.all:
            return Operations()
        portions = 0.0
        if self.costs.output:
            found = (self.density(whole) * self.volumes.last(whole, part) for part in parts)
            portions = sum(map(self._calls, found))
        return Operations(results=self.made(whole) * self._width, outputs=portions * self._width)

    def _output(self, parts: Sequence[int]) -> float:
        return self.output_operations(parts).seconds(self.costs) if sum(parts) == self.all else 0.0

    # -- plans

    def mask(self, node: Node) -> int:
        """The streams below a node."""
        return sum(1 << self.query.index(name) for name in node.streams)

    def cost(self, plan: Node) -> Cost:
        """What a whole plan costs."""
        if isinstance(plan, Leaf):
            return Cost(0.0, 0.0, 0.0)
        total = self.join_cost([self.mask(c) for c in plan.children], plan.orders)
        for child in plan.children:
            total += self.cost(child)
        return total

    def operations(self, plan: Node) -> Operations:
        """What a whole plan does per second."""
        if isinstance(plan, Leaf):
            return Operations()
        parts = [self.mask(c) for c in plan.children]
        total = self.join_operations(parts, plan.orders) + self.output_operations(parts)
        for child in plan.children:
            total += self.operations(child)
        return total


def _gap(rate: float) -> float:
    """Seconds between two tuples; a stream that fell silent long ago has a rate next to nothing."""
    return 1 / max(rate, 1 / _LONGEST_GAP)


def _buckets(rows: float) -> float:
    capacity = max(64.0, rows * (1 + 1 / 32))
    return float(1 << max(0, math.ceil(capacity) - 1).bit_length())


OPERATION_NAMES = tuple(f.name for f in fields(Operations))

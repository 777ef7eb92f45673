"""How long a migration takes, and what it costs: equations 1 to 8 of the CAPE paper.

*Moving state* matches the states of both plans, moves those that match, and joins the others from
their inputs; nothing comes out meanwhile. *Parallel track* runs both plans until the old one has
purged its last old tuple: W later if its joins have no join below them, else 2W, because an old
tuple that has joined a new one at the end of the first W lives on in the combination.

The functions named after the paper's terms are its equations for one join, from rates and sizes.
`predict` applies them to any two plans of a query, with the rates of the cost model, and adds what
the paper leaves out: a machine that has too little power for both plans at once.

*Hash joins.* By nested loops a pair costs T_j whether or not it matches. A hash join looks each
tuple of one side up (`probe`) and pays for the pairs that match.

*Corrected.* Equation 6 integrates over time and then multiplies by it once more, which its units do
not allow; here the cost of the first W is the integral itself.
Equation 8 takes |S_BC| to be λ_BC W, as in a running plan, where a combination is kept until W
after its latest tuple. A state that is recomputed is joined from windows of length W, which hold
half as many pairs, and a third as many triples: `predict` counts those.

*Units.* Seconds, tuples, and seconds of work; divide work by the speed of a machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plait.optimize.costs import Costs
from plait.optimize.model import Model
from plait.plan.diff import diff
from plait.plan.jtree import Join, Node, joins

JoinKind = Literal["nested-loop", "hash"]


@dataclass(frozen=True, slots=True)
class Terms:
    """The times of table 1, in seconds.

    >>> from plait.optimize.costs import PAPER
    >>> terms_of(PAPER, "nested-loop")
    Terms(compare=2e-07, cursor=2e-07, join=2.2e-06, store=2e-07, probe=0.0, carry=0.0,
          kind='nested-loop')
    """

    compare: float
    """T_m, to compare the names of two states."""
    cursor: float
    """T_c, to make a cursor."""
    join: float
    """T_j, to join a pair."""
    store: float
    """T_s, to insert a tuple into a state, or to take it out again."""
    probe: float = 0.0
    """To look a tuple up; hash joins only."""
    carry: float = 0.0
    """To copy a tuple's place, for each stream of a combination; hash joins only."""
    kind: JoinKind = "nested-loop"


def terms_of(costs: Costs, kind: JoinKind = "hash") -> Terms:
    """The terms of a machine from its calibrated costs; names and cursors cost like insertions."""
    if kind == "nested-loop":
        return Terms(costs.insert, costs.insert, costs.match, costs.insert)
    return Terms(
        compare=costs.insert,
        cursor=costs.insert,
        join=costs.match + costs.visit,
        store=costs.insert + costs.combine,
        probe=costs.probe,
        carry=3 * costs.carry,
        kind="hash",
    )


# -- one join (section 5.1 and 5.2)


def t_match(old_joins: int, new_joins: int, terms: Terms) -> float:
    """T_match = 4 N M T_m: every state of one plan with every state of the other.

    >>> t_match(3, 3, Terms(1.0, 0.0, 0.0, 0.0))
    36.0
    """
    return 4 * old_joins * new_joins * terms.compare


def t_move(old_joins: int, new_joins: int, terms: Terms) -> float:
    """T_move = 2 min(N, M) T_c.

    >>> t_move(3, 2, Terms(0.0, 1.0, 0.0, 0.0))
    4.0
    """
    return 2 * min(old_joins, new_joins) * terms.cursor


def t_state(left: float, right: float, sigma: float, terms: Terms, streams: int = 2) -> float:
    """The time to recompute S_AB from |S_A| and |S_B|: T_j |S_A||S_B| + T_s |S_A||S_B| σ.

    `streams` are those of the combinations, which a hash join copies.

    >>> t_state(10.0, 20.0, 0.1, Terms(0.0, 0.0, join=1.0, store=2.0))
    240.0
    >>> t_state(10.0, 20.0, 0.1, Terms(0.0, 0.0, join=1.0, store=2.0, probe=3.0, kind="hash"))
    90.0
    """
    found = left * right * sigma
    stored = found * (terms.store + streams * terms.carry)
    if terms.kind == "nested-loop":
        return left * right * terms.join + stored
    return min(left, right) * terms.probe + found * terms.join + stored


def t_parallel_track(height: int, window: float) -> float:
    """Equation 4: T_PT is W for h = 1 and 2W for h > 1.

    >>> t_parallel_track(1, 5.0), t_parallel_track(3, 5.0)
    (5.0, 10.0)
    """
    return window if height == 1 else 2 * window


def old_join_work(
    rate_a: float, rate_b: float, window: float, terms: Terms, sigma: float = 1.0
) -> float:
    """Equation 5: a join of the old box in 2W, 2W [2 T_j λ_a λ_b W + 2 T_s (λ_a + λ_b)].

    A hash join finds only `sigma` of the pairs.

    >>> old_join_work(10.0, 20.0, 1.0, Terms(0.0, 0.0, join=1.0, store=0.5))
    860.0
    """
    return 2 * window * _running(rate_a, rate_b, window, terms, sigma)


def new_join_work(
    rate_b: float, rate_c: float, window: float, terms: Terms, sigma: float = 1.0
) -> float:
    """Equation 6: a join of the new box in 2W: states fill for the first W, then purge.

    >>> new_join_work(10.0, 20.0, 1.0, Terms(0.0, 0.0, join=1.0, store=0.5))
    645.0
    """
    entered = (rate_b + rate_c) * window
    pairs = rate_b * rate_c * window**2
    filling = _pairs_work(pairs, entered, terms, sigma) + entered * terms.store
    return filling + window * _running(rate_b, rate_c, window, terms, sigma)


def _running(a: float, b: float, window: float, terms: Terms, sigma: float) -> float:
    """Work per second of a join whose states are full."""
    return _pairs_work(2 * a * b * window, a + b, terms, sigma) + 2 * terms.store * (a + b)


def _pairs_work(pairs: float, entered: float, terms: Terms, sigma: float) -> float:
    if terms.kind == "nested-loop":
        return pairs * terms.join
    return entered * terms.probe + pairs * sigma * terms.join


# -- any two plans


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted cost of both strategies."""

    t_match: float
    t_move: float
    t_recompute: float
    """T_S."""
    old_load: float
    """Work per second of the old plan."""
    new_load: float
    """Work per second of the new plan."""
    parallel_work: float
    """Work of both plans during a parallel track."""
    t_purge: float
    """W or 2W: how long old tuples live."""
    speed: float
    """Work per second that the machine does; the times are already divided by it."""

    @property
    def t_ms(self) -> float:
        """T_MS: seconds without results."""
        return self.t_match + self.t_move + self.t_recompute

    @property
    def parallel_extra(self) -> float:
        """Seconds that a parallel track takes beyond what the new plan alone would meanwhile."""
        return (self.parallel_work - self.new_load * self.t_purge) / self.speed


def height(plan: Node) -> int:
    """Count the levels of joins.

    >>> from plait.testing.examples import chain
    >>> from plait.plan.jtree import parse_shape
    >>> [height(parse_shape(chain(4), s)) for s in ("(a b c d)", "((a b) (c d))", "(((a b) c) d)")]
    [1, 2, 3]
    """
    if not isinstance(plan, Join):
        return 0
    return 1 + max(height(child) for child in plan.children)


def predict(
    model: Model,
    old: Node,
    new: Node,
    terms: Terms,
    speed: float = 1.0,
    t_purge: float | None = None,
) -> Prediction:
    """Predict both strategies for any two plans of a query with a global window.

    `t_purge` is how long old tuples live, if that does not follow from equation 4: an engine that
    purges by watermarks drops a combination with its oldest tuple.

    >>> from plait.optimize.costs import PAPER
    >>> from plait.testing.models import long_chain_model
    >>> from plait.plan.jtree import parse_shape
    >>> model = long_chain_model()
    >>> old, new = (parse_shape(model.query, s) for s in ("(((a b) c) d)", "(a ((b c) d))"))
    >>> found = predict(model, old, new, terms_of(PAPER, "nested-loop"))
    >>> f"T_MS {found.t_ms:.3f} s"
    'T_MS 0.355 s'
    """
    n, m = len(list(joins(old))), len(list(joins(new)))
    recompute = 0.0
    for state in diff(model.query, old, new).recomputed:
        assert state.new is not None
        masks = [sum(1 << s for s in source) for source in state.new.sources]
        gathered = masks[0]
        for mask in masks[1:]:
            both = gathered | mask
            sigma = model.agreement(gathered, mask)
            sizes = model.stored(gathered), model.stored(mask)
            recompute += t_state(*sizes, sigma, terms, both.bit_count())
            gathered = both
    window = (model.query.bounds.uniform or model.query.bounds.widest) / 1e6
    purge = t_parallel_track(height(old), window) if t_purge is None else t_purge
    spans = purge / (2 * window) if window else 0.0
    parallel = _plan_work(model, old, window, terms, filling=False) * spans
    parallel += _plan_work(model, new, window, terms, filling=True) * spans
    return Prediction(
        t_match=t_match(n, m, terms) / speed,
        t_move=t_move(n, m, terms) / speed,
        t_recompute=recompute / speed,
        old_load=_plan_work(model, old, window, terms, filling=False) / (2 * (window or 1.0)),
        new_load=_plan_work(model, new, window, terms, filling=False) / (2 * (window or 1.0)),
        parallel_work=parallel,
        t_purge=purge,
        speed=speed,
    )


def parallel_bytes(model: Model, old: Node, new: Node) -> float:
    """Predict the bytes of a parallel track beside those of the old plan.

    These are the combined states of the new plan, which are never shared while both plans run, and
    the indexes that the base windows do not have yet.

    >>> from plait.testing.models import long_chain_model
    >>> from plait.plan.jtree import parse_shape
    >>> model = long_chain_model()
    >>> deep, flat = (parse_shape(model.query, s) for s in ("(((a b) c) d)", "(a b c d)"))
    >>> parallel_bytes(model, flat, deep) > parallel_bytes(model, deep, flat)
    True
    """
    total = 0.0
    for state in diff(model.query, old, new).states:
        if state.new is None:
            continue
        mask = sum(1 << s for s in state.streams)
        needed = {sum(1 << k for k in by) for by in state.new.indexes}
        if len(state.streams) > 1:
            total += model.state_cost(mask, needed).bytes
        elif state.old is not None:
            there = {sum(1 << k for k in by) for by in state.old.indexes}
            both = model.state_cost(mask, there | needed).bytes
            total += both - model.state_cost(mask, there).bytes
    return total


def _plan_work(model: Model, plan: Node, window: float, terms: Terms, *, filling: bool) -> float:
    """The work of all joins of a plan in 2W, two inputs at a time."""
    of_join = new_join_work if filling else old_join_work
    total = 0.0
    for join in joins(plan):
        masks = [model.mask(child) for child in join.children]
        gathered = masks[0]
        for mask in masks[1:]:
            sigma = model.agreement(gathered, mask)
            total += of_join(model.made(gathered), model.made(mask), window, terms, sigma)
            gathered |= mask
    return total

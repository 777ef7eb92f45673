"""Equations of the CAPE paper that only its experiments need.

`plait.optimize.migration_cost` has those that Plait plans with, and says what is corrected.
Equation 7 is corrected in the same way: the rate is not multiplied by time. Equation 8 is printed
as in the paper.
"""

from __future__ import annotations

from plait.optimize.migration_cost import Prediction, Terms, t_match, t_move, t_state


def state_size(rate: float, window: float) -> float:
    """|S_A| = λ_A W.

    >>> state_size(10.0, 2.0)
    20.0
    """
    return rate * window


def equation_1(rate_a: float, rate_b: float, window: float, sigma: float, terms: Terms) -> float:
    """T_S_AB = λ_A λ_B W² (T_j + T_s σ_AB).

    >>> equation_1(10.0, 10.0, 2.0, 0.1, Terms(0.0, 0.0, join=1.0, store=1.0))
    440.0
    """
    return t_state(state_size(rate_a, window), state_size(rate_b, window), sigma, terms)


def output_rate(rate_a: float, rate_b: float, window: float, sigma: float) -> float:
    """Equation 2: λ_AB = 2 λ_A λ_B W σ_AB.

    >>> output_rate(10.0, 20.0, 1.0, 0.1)
    40.0
    """
    return 2 * rate_a * rate_b * window * sigma


def t_moving_state(old_joins: int, new_joins: int, recomputed: list[float], terms: Terms) -> float:
    """Equation 3: T_MS = T_match + T_move + T_S.

    >>> t_moving_state(3, 3, [100.0, 50.0], Terms(1.0, 1.0, 0.0, 0.0))
    192.0
    """
    both = t_match(old_joins, new_joins, terms) + t_move(old_joins, new_joins, terms)
    return both + sum(recomputed)


def new_output_rate(
    time: float, rate_b: float, rate_c: float, window: float, sigma: float
) -> float:
    """Equation 7: the output rate of a join of the new box, `time` seconds after it began.

    >>> [new_output_rate(t, 10.0, 10.0, 2.0, 0.1) for t in (1.0, 2.0, 9.0)]
    [20.0, 40.0, 40.0]
    """
    return 2 * rate_b * rate_c * sigma * min(time, window)


def equation_8(
    rates: tuple[float, float, float], sigmas: tuple[float, float], window: float, terms: Terms
) -> float:
    """T_MS of figure 4, from λ_B, λ_C, λ_D and σ_BC, σ_BCD, as printed (T_match, T_move left out).

    λ_B λ_C W² (T_j + T_s σ_BC) + 2 λ_B λ_C λ_D W³ (T_j σ_BC + T_s σ_BC σ_BCD)

    >>> equation_8((10.0, 10.0, 10.0), (0.05, 0.02), 1.0, Terms(0.0, 0.0, join=1.0, store=0.0))
    200.0
    """
    b, c, d = rates
    first = equation_1(b, c, window, sigmas[0], terms)
    joined = output_rate(b, c, window, sigmas[0])
    return first + t_state(joined * window, d * window, sigmas[1], terms, 3)


def t_pt(found: Prediction) -> float:
    """T_PT, longer than equation 4 if the machine cannot do the work in that time."""
    return max(found.t_purge, found.parallel_work / found.speed)


def t_clean(found: Prediction, since: float) -> float:
    """The time to process the backlog of `since` seconds, if the old plan was too slow."""
    return since * max(0.0, found.old_load / found.speed - 1)

"""Algorithm 1 and its invariant."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from plait.sites.planner.cost import SiteSetting, joined, one_way, paper_setting, sep_costs
from plait.sites.planner.greedy import greedy, greedy_sep
from plait.sites.plans.plan import Jep, Sep, check_jep, fully_connected, steps
from plait_lab.exhaustive.site_plans import Violation, violations
from plait_lab.workloads.site_settings import random_site_setting

settings_of_sites = st.builds(
    lambda seed, m: random_site_setting(Random(seed), m, shared=0.2),
    st.integers(0, 10**6),
    st.integers(2, 8),
)


@given(settings_of_sites)
def test_oracle_the_invariant_of_equation_4(setting: SiteSetting) -> None:
    """No later join would be cheaper in an earlier place, and every placement is the cheaper."""
    plan = greedy(setting)
    check_jep(setting.sites, plan)
    assert list(violations(setting, plan)) == []
    for sep in plan.seps:
        prefix = setting.first(sep.head)
        costs = sep_costs(setting, sep)
        for n, step in enumerate(steps(setting.sites, sep)):
            for later in sep.order[n:]:
                other = one_way(prefix, setting.candidate(later), setting.prices)
                assert costs[n] <= min(other.source, other.destination)
            prefix = joined(prefix, setting.candidate(step.stream), step.placement)


@given(settings_of_sites, st.integers(0, 10**6))
def test_the_invariant_holds_for_no_other_order_without_ties(
    setting: SiteSetting, seed: int
) -> None:
    """A plan with another order and the cheaper placements violates it somewhere."""
    random = Random(seed)
    best = greedy(setting)
    head = random.choice(setting.sites.streams)
    order = list(best.of(head).order)
    random.shuffle(order)
    prefix, placements = setting.first(head), []
    for stream in order:
        placement = one_way(prefix, setting.candidate(stream), setting.prices).placement
        placements.append(placement)
        prefix = joined(prefix, setting.candidate(stream), placement)
    sep = Sep(head, tuple(order), tuple(placements))
    other = Jep(tuple(sep if s.head == head else s for s in best.seps))
    found = list(violations(setting, other))
    assert (sep == best.of(head)) == (not found)
    assert all(v.head == head and v.cheaper < v.cost for v in found)


def test_a_faster_stream_goes_to_the_end() -> None:
    assert greedy_sep(paper_setting(4), "S1").order == ("S2", "S3", "S4")
    assert greedy_sep(paper_setting(4, {"S2": 200.0}), "S1").order == ("S3", "S4", "S2")
    assert greedy_sep(paper_setting(4, {"S3": 50.0}), "S1").order == ("S3", "S2", "S4")


def test_ties_go_to_the_first_stream_of_the_query() -> None:
    setting = paper_setting(4)
    turned = fully_connected({f"S{n}": f"N{n}" for n in (4, 2, 3, 1)}, 0.005, 128_000)
    again = SiteSetting(turned, setting.statistics)
    assert greedy_sep(again, "S1").order == ("S4", "S2", "S3")


def test_a_cross_product_is_never_planned() -> None:
    base = paper_setting(4, {"S4": 1.0})
    chain = frozenset(frozenset((f"S{n}", f"S{n + 1}")) for n in (1, 2, 3))
    setting = SiteSetting(base.sites, base.statistics, conditions=chain)
    assert greedy_sep(base, "S1").order[0] == "S4"
    assert greedy_sep(setting, "S1").order == ("S2", "S3", "S4")
    assert greedy_sep(setting, "S4").order == ("S3", "S2", "S1")


def test_a_violation_names_the_pair() -> None:
    plan = greedy(paper_setting(3))
    (found,) = violations(paper_setting(3, {"S2": 200.0}), plan)
    assert isinstance(found, Violation)
    assert (found.head, found.stream, found.later) == ("S1", "S2", "S3")

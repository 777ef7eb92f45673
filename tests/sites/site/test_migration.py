"""Whose windows a new plan needs."""

from __future__ import annotations

from plait.sites.plans.legs import example_sites
from plait.sites.plans.plan import Jep, Sep
from plait.sites.site.migration import holders

OLD = Jep(
    (Sep("a", ("b", "c"), (0, 1)), Sep("b", ("a", "c"), (1, 1)), Sep("c", ("b", "a"), (0, 1)))
)
NEW = Jep((OLD.seps[0], OLD.seps[1], Sep("c", ("a", "b"), (1, 0))))


def test_windows_come_from_where_the_same_heads_probe_now() -> None:
    """n1 keeps b for heads of a; what heads of c need may be at n3 only."""
    sites = example_sites()
    assert holders(sites, OLD, NEW, "n1") == {"b": ("n3",)}
    assert holders(sites, OLD, NEW, "n2") == holders(sites, OLD, OLD, "n1") == {}

"""Random settings of joins over sites: rates, selectivities, sizes, windows and links.

The ranges are around the paper's (100 tuples/s, 150 bytes, 0.5 s, 0.01, 5 ms, 128 kB/s), a factor
of about ten to either side. So some joins explode and others filter, and some links are slow.
"""

from __future__ import annotations

import math
from random import Random

from plait.sites.planner.cost import HASH, NESTED_LOOP, SiteSetting, StreamStatistics
from plait.sites.plans.plan import SiteLink, Sites


def random_site_setting(random: Random, streams: int, *, shared: float = 0.0) -> SiteSetting:
    """A setting with links that differ in each direction.

    `shared` is the probability that a stream arrives at the site of another one.

    >>> random_site_setting(Random(1), 4).sites.streams
    ('S1', 'S2', 'S3', 'S4')
    """
    names = [f"S{n}" for n in range(1, streams + 1)]
    homes: dict[str, str] = {}
    for n, name in enumerate(names, 1):
        others = list(dict.fromkeys(homes.values()))
        crowded = others and random.random() < shared
        homes[name] = random.choice(others) if crowded else f"N{n}"
    sites = tuple(dict.fromkeys(homes.values()))
    links = tuple(
        SiteLink(o, t, _around(random, 0.005), _around(random, 128_000))
        for o in sites
        for t in sites
        if o != t
    )
    return SiteSetting(
        Sites(sites, tuple(homes.items()), links, "N0"),
        {name: random_statistics(random) for name in names},
        random.choice([NESTED_LOOP, HASH]),
        _conditions(random, names),
    )


def random_statistics(random: Random) -> StreamStatistics:
    """Statistics of one stream.

    >>> 10 < random_statistics(Random(1)).rate < 1000
    True
    """
    return StreamStatistics(
        _around(random, 100), min(1.0, _around(random, 0.01)), _around(random, 150),
        _around(random, 0.5),
    )  # fmt: skip


def _around(random: Random, value: float) -> float:
    return value * math.exp(random.uniform(-math.log(10), math.log(10)))


def _conditions(random: Random, names: list[str]) -> frozenset[frozenset[str]] | None:
    """Every other time all pairs; otherwise a random tree, and some more pairs."""
    if random.random() < 0.5:
        return None
    pairs = {frozenset((name, random.choice(names[:n]))) for n, name in enumerate(names) if n}
    pairs |= {frozenset(random.sample(names, 2)) for _ in range(random.randrange(len(names)))}
    return frozenset(pairs)

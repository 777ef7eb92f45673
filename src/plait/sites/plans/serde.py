"""Plans over sites as JSON, together with the sites that they are for.

    {
      "version": 1,
      "sites": {
        "names": ["n1", "n2"],
        "homes": {"a": "n1", "b": "n2"},
        "links": [
          {"origin": "n1", "target": "n2", "latency": 0.005, "rate": 128000.0},
          {"origin": "n2", "target": "n1", "latency": 0.005, "rate": 128000.0}
        ],
        "results": "results"
      },
      "plan": [
        {"head": "a", "order": ["b"], "placements": [1]},
        {"head": "b", "order": ["a"], "placements": [0]}
      ]
    }

Latencies are seconds, rates bytes per second. As with other plans, what is read is checked in
full, and an error names the place in the text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from plait.errors import PlaitError, SiteError
from plait.plan.serde import parse_json, pretty
from plait.query.reading import Reader
from plait.sites.plans.plan import Jep, Placement, Sep, SiteLink, Sites, check_jep

VERSION = 1
_READ = Reader(SiteError)
_T = TypeVar("_T")


def to_dict(sites: Sites, jep: Jep) -> dict[str, object]:
    """Sites and plan with their version, in the types of JSON.

    >>> from plait.sites.plans.plan import fully_connected
    >>> sites = fully_connected({"a": "n1", "b": "n2"}, 0.005, 128_000)
    >>> jep = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))
    >>> to_dict(sites, jep)["plan"][0]
    {'head': 'a', 'order': ['b'], 'placements': [1]}
    """
    check_jep(sites, jep)
    return {
        "version": VERSION,
        "sites": {
            "names": list(sites.names),
            "homes": dict(sites.homes),
            "links": [
                {"origin": x.origin, "target": x.target, "latency": x.latency, "rate": x.rate}
                for x in sites.links
            ],
            "results": sites.results,
        },
        "plan": [
            {"head": sep.head, "order": list(sep.order), "placements": list(sep.placements)}
            for sep in jep.seps
        ],
    }


def from_dict(value: object) -> tuple[Sites, Jep]:
    """Sites and plan in what `to_dict` returned.

    >>> from_dict({"version": 1, "sites": {}, "plan": []})
    Traceback (most recent call last):
    plait.errors.SiteError: $.sites lacks the field 'names'
    """
    _READ.version(value, VERSION, "plan")
    fields = _READ.fields(value, "$", ("version", "sites", "plan"))
    sites = _sites(fields["sites"], "$.sites")
    seps = tuple(_sep(item, where) for item, where in _READ.items(fields["plan"], "$.plan"))
    jep = Jep(seps)
    _placed("$.plan", lambda: check_jep(sites, jep))
    return sites, jep


def dumps(sites: Sites, jep: Jep) -> str:
    """Sites and plan as JSON text.

    >>> from plait.sites.plans.plan import fully_connected
    >>> sites = fully_connected({"a": "n1", "b": "n2"}, 0.005, 128_000)
    >>> jep = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))
    >>> loads(dumps(sites, jep)) == (sites, jep)
    True
    """
    return pretty(to_dict(sites, jep), "")


def loads(text: str) -> tuple[Sites, Jep]:
    """Sites and plan in a JSON text.

    >>> loads("{}")
    Traceback (most recent call last):
    plait.errors.SiteError: $ lacks the field 'version'
    """
    return from_dict(parse_json(text))


def _sites(value: object, path: str) -> Sites:
    fields = _READ.fields(value, path, ("names", "homes", "links", "results"))
    names = _names(fields["names"], f"{path}.names", "the name of a site")
    homes = tuple(
        (stream, _READ.text(site, f"{path}.homes.{stream}", "the name of a site"))
        for stream, site in _READ.mapping(fields["homes"], f"{path}.homes").items()
    )
    links = tuple(_link(item, at) for item, at in _READ.items(fields["links"], f"{path}.links"))
    results = _READ.text(fields["results"], f"{path}.results", "the name of a site")
    return _placed(path, lambda: Sites(names, homes, links, results))


def _link(value: object, path: str) -> SiteLink:
    fields = _READ.fields(value, path, ("origin", "target", "latency", "rate"))
    origin = _READ.text(fields["origin"], f"{path}.origin", "the name of a site")
    target = _READ.text(fields["target"], f"{path}.target", "the name of a site")
    latency = _READ.number(fields["latency"], f"{path}.latency")
    rate = _READ.number(fields["rate"], f"{path}.rate")
    return _placed(path, lambda: SiteLink(origin, target, latency, rate))


def _sep(value: object, path: str) -> Sep:
    fields = _READ.fields(value, path, ("head", "order", "placements"))
    head = _READ.text(fields["head"], f"{path}.head", "the name of a stream")
    order = _names(fields["order"], f"{path}.order", "the name of a stream")
    found = _READ.items(fields["placements"], f"{path}.placements")
    # Sep refuses whole numbers that are no placements.
    placements = tuple(cast(Placement, _READ.whole(p, at, "0 or 1")) for p, at in found)
    return _placed(path, lambda: Sep(head, order, placements))


def _names(value: object, path: str, what: str) -> tuple[str, ...]:
    return tuple(_READ.text(item, where, what) for item, where in _READ.items(value, path))


def _placed(path: str, made: Callable[[], _T]) -> _T:
    """What `made` returns; what it refuses is refused with the place in the text."""
    try:
        return made()
    except PlaitError as error:
        raise type(error)(f"{path}: {error.message}", remedy=error.remedy) from None

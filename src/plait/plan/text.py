"""Read whatever a user gives as a plan, and check that it runs the query.

    None                    nothing: the caller's choice, or else one mjoin
    "mjoin"                 one join of all streams, without intermediate states
    "((a b) c)"             a tree of joins by its shape, with the usual probe orders
    "teddies", "eddies"     a router in place of a plan; "teddies (random)" also names its policy
    '{"version": 1, ...}'   a tree with its probe orders, as JSON text or as a dict
    a Join, Leaf, ...       a plan as a value

`run`, `explain`, `to_df`, `Running.migrate`, the command line, the benchmarks and the experiments
all read plans here, so a text means the same wherever it is given. What the system itself writes
and reads again (checkpoints, epochs, event logs) has one form only, and `plait.plan.serde` reads
it directly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from plait.errors import PlanError, did_you_mean
from plait.plan.jtree import Join, Leaf, Node, check_plan, mjoin, parse_shape
from plait.plan.routed import ENGINES, Eddies, Plan, Routed, Teddies, routed
from plait.plan.serde import from_dict, parse_json
from plait.query.query import Query

MOST_TEXT = 1 << 20
"""Characters of a plan. One mjoin of 300 streams has half as many, as JSON."""

MJOIN = "mjoin"
"""The name of the plan without intermediate states."""

_EXAMPLE = 'a tree such as "((a b) c)", "mjoin", "teddies", "eddies", or JSON'
_WORD = re.compile(r"\w+")
_ROUTER = re.compile(r"(\w+)\s*(?:\(([^()]*)\))?")

Given = Plan | str | Mapping[str, object] | None
"""Everything that a user may give as a plan."""


def read_plan(query: Query, given: Given, choose: Callable[[Query], Plan] = mjoin) -> Plan:
    """Read a plan and check it against the query; `choose` decides if none was given.

    >>> from plait.testing.examples import chain
    >>> str(read_plan(chain(3), "((a b) c)")), str(read_plan(chain(3), "Teddies"))
    ('((a b) c)', 'teddies (ordered)')
    >>> str(read_plan(chain(3), None)), str(read_plan(chain(3), "mjoin"))
    ('(a b c)', '(a b c)')
    >>> read_plan(chain(3), "tedies")
    Traceback (most recent call last):
    plait.errors.PlanError: there is no plan 'tedies'; did you mean 'teddies'? ...
    """
    if given is None:
        return choose(query)
    if isinstance(given, str):
        return _from_text(query, given)
    if isinstance(given, Mapping):
        return from_dict(_plan_in(given), query)
    if isinstance(given, Join | Leaf):
        check_plan(query, given)
        return given
    if isinstance(given, Eddies | Teddies):
        return given
    raise PlanError(f"a {type(given).__name__} is not a plan", remedy=f"give {_EXAMPLE}")


def read_tree(query: Query, given: Given) -> Node:
    """Read a plan that must be a tree of joins.

    >>> from plait.testing.examples import chain
    >>> read_tree(chain(3), "eddies")
    Traceback (most recent call last):
    plait.errors.PlanError: eddies (lottery) is not a tree of joins; give one such as "((a b) c)"
    """
    plan = read_plan(query, given)
    if not isinstance(plan, Join | Leaf):
        raise PlanError(f"{plan} is not a tree of joins", remedy='give one such as "((a b) c)"')
    return plan


def read_router(text: str) -> Routed:
    """Read the name of a router, alone or with its policy, as `str` prints it.

    >>> read_router("teddies (random)") == Teddies(policy="random")
    True
    >>> read_router("tedies")
    Traceback (most recent call last):
    plait.errors.PlanError: there is no engine 'tedies'; did you mean 'teddies'? ...
    """
    found = _ROUTER.fullmatch(text.strip())
    if found is None:
        raise PlanError(
            f"{_short(text)!r} is not the name of an engine",
            remedy='write for example "teddies (random)"',
        )
    name, policy = found[1].lower(), found[2]
    return routed(name) if policy is None else routed(name, policy=policy.strip())


def _from_text(query: Query, given: str) -> Plan:
    text = given.strip()
    if len(text) > MOST_TEXT:
        raise PlanError(
            f"the plan has more than {MOST_TEXT:,} characters", remedy=f"give {_EXAMPLE}"
        )
    if not text:
        raise PlanError("the plan is an empty text", remedy=f"give {_EXAMPLE}")
    if text[0] in "{[":
        return from_dict(_plan_in(parse_json(text)), query)
    first = _WORD.match(text)
    if first is not None and first[0].lower() in ENGINES:
        return read_router(text)
    if text.lower() == MJOIN:
        return mjoin(query)
    if first is not None and first[0] == text and text not in query.names:
        raise PlanError(
            f"there is no plan {_short(text)!r}",
            remedy=f"{did_you_mean(text, (MJOIN, *ENGINES))}, or a tree such as {mjoin(query)}",
        )
    return parse_shape(query, text)


def _plan_in(value: object) -> object:
    """Find the plan in JSON, also in what `plait explain --json` and `plait plan --json` write."""
    if isinstance(value, Mapping) and "version" not in value:
        plan = value.get("plan")
        if isinstance(plan, Mapping) and "version" in plan:
            return plan
    return value


def _short(text: str, longest: int = 60) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"

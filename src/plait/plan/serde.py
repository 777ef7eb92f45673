"""Write plans as JSON, to store, compare and edit, and read them.

    {
      "version": 1,
      "plan": {
        "kind": "join",
        "children": [{"kind": "stream", "stream": "a"}, {"kind": "stream", "stream": "b"}],
        "orders": [[1], [0]]
      }
    }

`orders[c]` lists the positions in `children` that a new tuple of child c probes, in this order.
What is read is checked in full: an error names the place in the text (`$.plan.children[0]`).
Whatever changes in the format changes the version, and a version that is not known is refused.
"""

from __future__ import annotations

import json

from plait.errors import PlanError, did_you_mean
from plait.plan.jtree import Join, Leaf, Node, check_plan
from plait.query.query import Query
from plait.query.reading import Reader, shown

VERSION = 1
_WIDTH = 88
_TOO_DEEP = "the plan is nested too deeply"
_READ = Reader(PlanError)


def to_dict(plan: Node) -> dict[str, object]:
    """Write a plan with its version, in the types of JSON.

    >>> to_dict(Leaf("a"))
    {'version': 1, 'plan': {'kind': 'stream', 'stream': 'a'}}
    """
    return {"version": VERSION, "plan": _node_to_dict(plan)}


def from_dict(value: object, query: Query | None = None) -> Node:
    """Read what `to_dict` wrote; with a query, check the plan against it.

    >>> str(from_dict(to_dict(Leaf("a"))))
    'a'
    """
    try:
        _READ.version(value, VERSION, "plan")
        plan = _node(_READ.fields(value, "$", ("version", "plan"))["plan"], "$.plan")
        if query is not None:
            check_plan(query, plan)
    except RecursionError:
        raise PlanError(_TOO_DEEP) from None
    return plan


def dumps(plan: Node, query: Query | None = None) -> str:
    """Write a plan as JSON text; with a query, check it first.

    >>> join = Join((Leaf("a"), Leaf("b")), ((1,), (0,)))
    >>> loads(dumps(join)) == join
    True
    """
    if query is not None:
        check_plan(query, plan)
    return pretty(to_dict(plan), "")


def loads(text: str, query: Query | None = None) -> Node:
    """Read a plan from JSON text; with a query, check it.

    >>> loads('{"version": 1, "plan": {"kind": "join"}}')
    Traceback (most recent call last):
    plait.errors.PlanError: $.plan lacks the field 'children'
    """
    return from_dict(parse_json(text), query)


def parse_json(text: str) -> object:
    """Parse JSON text that should hold a plan; refuse duplicate fields.

    >>> parse_json("[1, ")
    Traceback (most recent call last):
    plait.errors.PlanError: line 1, column 5: the plan is not JSON: Expecting value
    """
    try:
        value: object = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise PlanError(
            f"line {error.lineno}, column {error.colno}: the plan is not JSON: {error.msg}"
        ) from None
    except ValueError as error:
        raise PlanError(f"the plan is not JSON: {error}") from None
    except RecursionError:
        raise PlanError(_TOO_DEEP) from None
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise PlanError(f"the plan has the field {twice!r} twice in one object")
    return fields


def _node_to_dict(node: Node) -> dict[str, object]:
    if isinstance(node, Leaf):
        return {"kind": "stream", "stream": node.stream}
    return {
        "kind": "join",
        "children": [_node_to_dict(child) for child in node.children],
        "orders": [list(order) for order in node.orders],
    }


def _node(value: object, path: str) -> Node:
    kind = _READ.mapping(value, path).get("kind", "")
    if kind == "stream":
        stream = _READ.fields(value, path, ("kind", "stream"))["stream"]
        return Leaf(_READ.text(stream, f"{path}.stream", "the name of a stream"))
    if kind == "join":
        fields = _READ.fields(value, path, ("kind", "children", "orders"))
        children = _READ.items(fields["children"], f"{path}.children")
        orders = _READ.items(fields["orders"], f"{path}.orders")
        nodes = [_node(child, where) for child, where in children]
        probes = [_order(order, where) for order, where in orders]
        try:
            return Join(tuple(nodes), tuple(probes))
        except PlanError as error:
            raise PlanError(f"{path}: {error.message}", remedy=error.remedy) from None
    if kind == "":
        raise PlanError(f"{path} lacks the field 'kind'", remedy="known kinds: stream, join")
    raise PlanError(
        f"{path}.kind is {shown(kind)}", remedy=did_you_mean(str(kind), ("stream", "join"))
    )


def _order(value: object, path: str) -> tuple[int, ...]:
    positions = _READ.items(value, path)
    return tuple(_READ.whole(p, where, "the position of a child") for p, where in positions)


def pretty(value: object, indent: str) -> str:
    """Write JSON with every object and list on one line where it fits: short, and good to diff."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or (indent and len(indent) + len(line) <= _WIDTH):
        return line
    deeper = indent + "  "
    if isinstance(value, dict):
        entries = [f"{json.dumps(k)}: {pretty(v, deeper)}" for k, v in value.items()]
        opening, closing = "{", "}"
    else:
        entries = [pretty(v, deeper) for v in value]
        opening, closing = "[", "]"
    body = ",\n".join(deeper + entry for entry in entries)
    return f"{opening}\n{body}\n{indent}{closing}"

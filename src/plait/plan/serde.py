"""Plans as JSON, to store, compare and edit.

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
from collections.abc import Mapping

from plait.errors import PlanError, did_you_mean
from plait.plan.jtree import Join, Leaf, Node, check_plan
from plait.query.query import Query

VERSION = 1
_WIDTH = 88
_TOO_DEEP = "the plan is nested too deeply"


def to_dict(plan: Node) -> dict[str, object]:
    """The plan with its version, in the types of JSON.

    >>> to_dict(Leaf("a"))
    {'version': 1, 'plan': {'kind': 'stream', 'stream': 'a'}}
    """
    return {"version": VERSION, "plan": _node_to_dict(plan)}


def from_dict(value: object, query: Query | None = None) -> Node:
    """The plan in what `to_dict` returned; with a query, also checked against it.

    >>> str(from_dict(to_dict(Leaf("a"))))
    'a'
    """
    # The version comes first: another one may have other fields.
    if isinstance(value, Mapping) and "version" in value:
        version = value["version"]
        if type(version) is not int or version != VERSION:
            raise PlanError(
                f"$.version is {_shown(version)}; this release reads version {VERSION}",
                remedy="write the plan again with this release",
            )
    try:
        plan = _node(_fields(value, "$", ("version", "plan"))["plan"], "$.plan")
    except RecursionError:
        raise PlanError(_TOO_DEEP) from None
    if query is not None:
        check_plan(query, plan)
    return plan


def dumps(plan: Node, query: Query | None = None) -> str:
    """The plan as JSON text; with a query, checked against it first.

    >>> join = Join((Leaf("a"), Leaf("b")), ((1,), (0,)))
    >>> loads(dumps(join)) == join
    True
    """
    if query is not None:
        check_plan(query, plan)
    return _pretty(to_dict(plan), "")


def loads(text: str, query: Query | None = None) -> Node:
    """The plan in a JSON text; with a query, also checked against it.

    >>> loads('{"version": 1, "plan": {"kind": "join"}}')
    Traceback (most recent call last):
    plait.errors.PlanError: $.plan lacks the field 'children'
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise PlanError(
            f"line {error.lineno}, column {error.colno}: the plan is no JSON: {error.msg}"
        ) from None
    except ValueError as error:
        raise PlanError(f"the plan is no JSON: {error}") from None
    except RecursionError:
        raise PlanError(_TOO_DEEP) from None
    return from_dict(value, query)


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
    kind = _mapping(value, path).get("kind", "")
    if kind == "stream":
        stream = _fields(value, path, ("kind", "stream"))["stream"]
        if not isinstance(stream, str):
            raise PlanError(f"{path}.stream is {_shown(stream)}, not the name of a stream")
        return Leaf(stream)
    if kind == "join":
        fields = _fields(value, path, ("kind", "children", "orders"))
        children = _list(fields["children"], f"{path}.children")
        orders = _list(fields["orders"], f"{path}.orders")
        nodes = [_node(child, f"{path}.children[{c}]") for c, child in enumerate(children)]
        probes = [_order(order, f"{path}.orders[{c}]") for c, order in enumerate(orders)]
        try:
            return Join(tuple(nodes), tuple(probes))
        except PlanError as error:
            raise PlanError(f"{path}: {error.message}", remedy=error.remedy) from None
    if kind == "":
        raise PlanError(f"{path} lacks the field 'kind'", remedy="known kinds: stream, join")
    raise PlanError(
        f"{path}.kind is {_shown(kind)}", remedy=did_you_mean(str(kind), ("stream", "join"))
    )


def _order(value: object, path: str) -> tuple[int, ...]:
    order = []
    for n, position in enumerate(_list(value, path)):
        # bool is an int to Python, but not to a reader of JSON.
        if not isinstance(position, int) or isinstance(position, bool):
            raise PlanError(f"{path}[{n}] is {_shown(position)}, not the position of a child")
        order.append(position)
    return tuple(order)


def _fields(value: object, path: str, names: tuple[str, ...]) -> Mapping[str, object]:
    found = _mapping(value, path)
    if missing := [name for name in names if name not in found]:
        raise PlanError(f"{path} lacks the field {missing[0]!r}")
    if unknown := [name for name in found if name not in names]:
        raise PlanError(
            f"{path} has an unknown field {unknown[0]!r}",
            remedy=did_you_mean(str(unknown[0]), names),
        )
    return found


def _mapping(value: object, path: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise PlanError(f"{path} is {_shown(value)}, not an object")
    return value


def _list(value: object, path: str) -> list[object] | tuple[object, ...]:
    if not isinstance(value, list | tuple):
        raise PlanError(f"{path} is {_shown(value)}, not a list")
    return value


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _pretty(value: object, indent: str) -> str:
    """JSON with every object and list on one line where it fits: short, and good to diff."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or (indent and len(indent) + len(line) <= _WIDTH):
        return line
    deeper = indent + "  "
    if isinstance(value, dict):
        entries = [f"{json.dumps(k)}: {_pretty(v, deeper)}" for k, v in value.items()]
        opening, closing = "{", "}"
    else:
        entries = [_pretty(v, deeper) for v in value]
        opening, closing = "[", "]"
    body = ",\n".join(deeper + entry for entry in entries)
    return f"{opening}\n{body}\n{indent}{closing}"

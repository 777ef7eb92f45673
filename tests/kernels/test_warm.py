"""After `warm()` no batch waits for the compiler, whatever its column types.

The test runs this file in a process of its own: other tests may have compiled what `warm` forgot.
"""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
import pytest

import plait.kernels
from plait.kernels.warm import warm
from plait.local.host import LocalRun
from plait.plan.jtree import Node, mjoin, parse_shape
from plait.query.bounds import Constraint, global_window
from plait.query.expr import Call, Column, Expr
from plait.query.query import Field, Query, Stream, make_query

KEYS = (
    pa.int64(), pa.int16(), pa.uint64(), pa.string(), pa.large_string(), pa.binary(3),
    pa.dictionary(pa.int32(), pa.string()), pa.decimal128(9, 2), pa.float64(), pa.float32(),
    pa.date32(), pa.time32("s"), pa.timestamp("ns"), pa.bool_(),
)  # fmt: skip
PAYLOADS = (
    pa.int64(), pa.bool_(), pa.int8(), pa.uint16(), pa.int32(), pa.float32(), pa.float64(),
    pa.decimal128(20, 3), pa.string(), pa.large_binary(), pa.list_(pa.int32()), pa.null(),
    pa.binary(4),
)  # fmt: skip
ROWS = 20
CALLED_BY_OTHERS = {"hash_bytes"}


@pytest.mark.slow
def test_nothing_is_compiled_after_warming() -> None:
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr[-3000:]}"


def kernels() -> dict[str, Any]:
    """Every function that `@kernel` compiles, by name."""
    found = {}
    for module in pkgutil.iter_modules(plait.kernels.__path__):
        for name, value in vars(importlib.import_module(f"plait.kernels.{module.name}")).items():
            if getattr(value, "targetoptions", {}).get("nogil"):
                found[name] = value
    return found


def signatures() -> set[str]:
    return {f"{name}{s}" for name, kernel in kernels().items() for s in kernel.signatures}


def column(type_: pa.DataType) -> pa.Array:
    """A few different values of a type."""
    numbers = [i % 2 for i in range(ROWS)]
    if pt.is_dictionary(type_):
        return pa.array(map(str, numbers)).dictionary_encode()
    if pt.is_null(type_):
        return pa.nulls(ROWS)
    if pt.is_list(type_):
        return pa.array([[i] for i in numbers], type_)
    if pt.is_string(type_) or pt.is_large_string(type_):
        return pa.array(map(str, numbers), type_)
    if pt.is_large_binary(type_):
        return pa.array([b"%d" % i for i in numbers], type_)
    if pt.is_fixed_size_binary(type_):
        return pa.array([b"%d" % i * type_.byte_width for i in numbers], type_)
    if pt.is_boolean(type_):
        return pa.array([i > 0 for i in numbers])
    return pa.array(numbers, type_)


def batch(stream: Stream, start: int, stride: int) -> pa.Table:
    """Rows from `start` on, in order if the stride is 1; a quarter of the payload is null."""
    columns = []
    for field in stream.fields:
        if field.name == stream.time:
            columns.append(pa.array([start + i * stride % ROWS for i in range(ROWS)], field.type))
        elif field.name.startswith("p") and not pt.is_null(field.type):
            known = pa.array([i % 4 != 1 for i in range(ROWS)])
            columns.append(pc.if_else(known, column(field.type), pa.scalar(None, field.type)))
        else:
            columns.append(column(field.type))
    return pa.table(columns, schema=stream.schema)


def run(query: Query, plan: Node) -> None:
    local = LocalRun(query, plan)
    for number, stride in enumerate((1, 7, 1, 3)):
        tables = {s.name: batch(s, number * ROWS, stride) for s in query.streams}
        local.push(tables)
        local.push({name: table.slice(1, 3) for name, table in tables.items()})
        local.push({name: as_read(table.slice(4, 9)) for name, table in tables.items()})
    assert local.counts.results, f"{plan} finds nothing"


def as_read(table: pa.Table) -> pa.Table:
    """The same rows in memory that may not be written, as readers of files and sockets give."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(pa.py_buffer(sink.getvalue().to_pybytes())).read_all()


def streams(*keys: Field, payloads: Sequence[pa.DataType] = PAYLOADS) -> list[Stream]:
    fields = (Field("ts", pa.timestamp("us")), *keys)
    payload = tuple(Field(f"p{i}", type_) for i, type_ in enumerate(payloads))
    return [Stream(name, fields + payload, "ts", 2 * ROWS) for name in "abc"]


def equal(*columns: str) -> list[Expr]:
    return [Call("eq", (Column(a, c), Column(b, c))) for c in columns for a, b in pairwise("abc")]


def main() -> int:
    warm()
    idle = {name for name, kernel in kernels().items() if not kernel.signatures}
    before = signatures()
    later: Expr = Call("ge", (Column("a", "p0"), Column("b", "p0")))
    for key in KEYS:
        joined = streams(Field("k", key), payloads=PAYLOADS[:1])
        query = make_query(joined, [*equal("k"), later], global_window(3, 2))
        for shape in ("(a b c)", "((a b) c)"):
            run(query, parse_shape(query, shape))
    two_classes = [*equal("k", "l"), Call("eq", (Column("a", "p0"), Column("b", "k")))]
    uneven = (Constraint(0, 1, 3), Constraint(1, 0, 1), Constraint(1, 2, 2), Constraint(2, 1, 0))
    query = make_query(
        streams(Field("k", pa.int64()), Field("l", pa.string())), two_classes, uneven
    )
    for plan in (mjoin(query), parse_shape(query, "((a b) c)"), parse_shape(query, "(a (b c))")):
        run(query, plan)
    missed = [f"compiled later: {s}" for s in sorted(signatures() - before)]
    missed += [f"not compiled: {name}" for name in sorted(idle - CALLED_BY_OTHERS)]
    print(*missed, sep="\n")
    return len(missed)


if __name__ == "__main__":
    sys.exit(main())

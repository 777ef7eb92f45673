"""Follow Spark's rules for numbers and times where they differ from Plait's own.

By itself, Plait computes integers in 64 bits and floats as doubles, and what has no value is null.
On Spark, Spark's answer is the answer:

- INT and smaller types are computed as such, and FLOAT in 32 bits;
- with `spark.sql.ansi.enabled` what does not fit is an error there and null here; without it, it
  wraps around, is cut off, or is the largest number, as in Java;
- where Java is older than 19, floating-point numbers become text, decimals and rounded numbers by
  the digits that it writes, which are not always the shortest;
- the difference of two instants is that of what clocks show, and a day is one of the calendar.

This is a pass over finished expressions: bounds on event times and the names of result columns come
from the expressions as they were written.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.types as pt

from plait.query.dialect import Dialect
from plait.query.evaluate import type_of
from plait.query.expr import COMPARISONS, Call, Cast, Column, Expr, Literal
from plait.query.values.forms import is_text

_WIDTH = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_ALIKE = frozenset({"coalesce", "greatest", "least"})
_INTEGERS = frozenset({"add", "sub", "mul", "mod", "pmod", "neg", "abs", "round", "bround"})
_OVERFLOWING = frozenset({"add", "sub", "mul", "neg", "abs", "round", "bround"})
_DAY = dt.timedelta(days=1)
ZERO, NULL = Literal(0, pa.int64()), Literal(None, pa.null())


def on_spark(expr: Expr, lookup: Callable[[Column], pa.DataType], dialect: Dialect) -> Expr:
    """Rewrite an expression to Spark's rules; without a session, return it unchanged.

    >>> n = Column("t", "n")
    >>> more = Call("add", (n, Literal(1, pa.int64())))
    >>> print(on_spark(more, lambda column: pa.int32(), Dialect("UTC")))
    CAST(t.n + 1 AS int32)
    """
    return expr if dialect.zone is None else _Meaning(lookup, dialect).of(expr)


class _Meaning:
    def __init__(self, lookup: Callable[[Column], pa.DataType], dialect: Dialect) -> None:
        assert dialect.zone is not None
        self.lookup = lookup
        self.zone = dialect.zone
        self.ansi = dialect.ansi
        self.shortest = dialect.shortest

    def of(self, expr: Expr) -> Expr:
        match expr:
            case Cast(operand, target):
                return self.cast(self.of(operand), target)
            case Call("try", (Call(op, args),)):
                return self.typed(Call(op, tuple(map(self.of, args))), checked=True)
            case Call("try", (Cast(operand, target),)):
                return self.cast(self.of(operand), target, checked=True)
            case Call("try", (inner,)):
                return self.of(inner)
            case Call(op, args):
                return self.call(Call(op, tuple(map(self.of, args))))
        return expr

    def kind(self, expr: Expr) -> pa.DataType:
        """Return the type in Spark: an integer constant is an INT if it fits."""
        match expr:
            case Literal(int() as value, type_) if (
                type_ == pa.int64() and -(2**31) <= value < 2**31
            ):
                return pa.int32()
        return type_of(expr, self.lookup)

    def call(self, call: Call) -> Expr:
        kinds = [self.kind(arg) for arg in call.args]
        there = [k for k in kinds if not pt.is_null(k)]
        if call.op in ("add", "sub") and any(map(pt.is_timestamp, there)):
            return self.moments(call, kinds)
        if call.op in COMPARISONS or call.op == "in":
            return self.floats(call, kinds)
        if not self.shortest and any(map(pt.is_floating, kinds)):
            if call.op in ("concat", "concat_ws"):
                return Call(call.op, tuple(map(self.written, call.args, kinds)))
            if call.op in ("round", "bround"):
                rounded = Call(f"java17_{call.op}", call.args)
                return Cast(rounded, pa.float32()) if kinds[0] == pa.float32() else rounded
        if call.op in ("ceil", "floor") and any(map(pt.is_floating, there)):
            return self.whole(call)
        return self.typed(call)

    def typed(self, call: Call, *, checked: bool = False) -> Expr:
        """Type arithmetic and choices among numbers as Spark does."""
        kinds = [self.kind(arg) for arg in call.args]
        if call.op == "length":
            return Cast(call, pa.int32())
        if call.op == "intdiv" and not (self.ansi or checked):
            # The smallest integer divided by -1.
            a, b = call.args
            minus = Call("eq", (b, Literal(-1, pa.int64())))
            return Call("coalesce", (call, Call("case", (minus, a, NULL))))
        if call.op not in _INTEGERS | _ALIKE | {"case"}:
            return call
        operands = self.operands(call, kinds)
        there = [k for k in operands if not pt.is_null(k)]
        if not there:
            return call
        if all(k in _WIDTH for k in there):
            return self.integers(call, max(there, key=_WIDTH.__getitem__), checked)
        floats = [k for k in there if pt.is_floating(k)]
        others = [k for k in there if not pt.is_floating(k)]
        narrow = floats and all(k == pa.float32() for k in floats)
        if narrow and (not others or (not self.ansi and all(k in _WIDTH for k in others))):
            if call.op in _ALIKE | {"case"} and not others:
                return call
            return Cast(self.floats(call, kinds), pa.float32())
        return call

    def operands(self, call: Call, kinds: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        """List the types that decide the type of the result."""
        if call.op == "case":
            return [*kinds[1:-1:2], kinds[-1]]
        return kinds[:1] if call.op in ("round", "bround") else kinds

    def integers(self, call: Call, type_: pa.DataType, checked: bool) -> Expr:
        """Cast integers to the widest of their types."""
        wide = type_ == pa.int64()
        if self.ansi or checked or call.op not in _OVERFLOWING:
            return call if wide else Cast(call, type_)
        if call.op in ("round", "bround"):
            exact = Call(call.op, (Cast(call.args[0], pa.decimal128(20, 0)), *call.args[1:]))
            return Call("java_integer", (exact, Literal(_WIDTH[type_], pa.int64())))
        if not wide:
            return Call("java_integer", (call, Literal(_WIDTH[type_], pa.int64())))
        match call.op, call.args:
            case ("add" | "sub" | "mul") as op, (a, b):
                return Call(f"{op}_wrapping", (a, b))
            case "neg", (a,):
                return Call("sub_wrapping", (ZERO, a))
            case "abs", (a,):
                return Call("case", (Call("lt", (a, ZERO)), Call("sub_wrapping", (ZERO, a)), a))
        return call

    def floats(self, call: Call, kinds: Sequence[pa.DataType]) -> Call:
        """Without ANSI, cast integers beside a FLOAT to FLOAT."""
        there = [k for k in kinds if not pt.is_null(k)]
        meets = pa.float32() in there and all(k == pa.float32() or k in _WIDTH for k in there)
        if self.ansi or not meets or call.op in ("div", "case", "round", "bround"):
            return call
        return Call(
            call.op,
            tuple(
                Cast(arg, pa.float32()) if kind in _WIDTH else arg
                for arg, kind in zip(call.args, kinds, strict=True)
            ),
        )

    def whole(self, call: Call) -> Expr:
        """Round NaN to 0, and without ANSI clip numbers that are too large."""
        (value,) = call.args
        other = (
            Call("case", (Call("isnan", (value,)), ZERO, NULL))
            if self.ansi
            else Call("java_integer", (value, Literal(64, pa.int64())))
        )
        return Call("coalesce", (call, other))

    def cast(self, operand: Expr, target: pa.DataType, *, checked: bool = False) -> Expr:
        source = self.kind(operand)
        if pt.is_timestamp(target) and target.tz is not None and pt.is_integer(source):
            return Cast(Call("instant_at", (operand,)), target)
        if not self.shortest and pt.is_floating(source):
            if is_text(target):
                return self.written(operand, source)
            if pt.is_decimal(target):
                # Spark reads the text of the number as a double, also that of a FLOAT.
                return Cast(self.written(Cast(operand, pa.float64()), pa.float64()), target)
        lenient = not (self.ansi or checked)
        convertible = (
            pt.is_integer(source)
            or pt.is_floating(source)
            or pt.is_decimal(source)
            or is_text(source)
        )
        if lenient and target in _WIDTH and convertible and source != target:
            return Call("java_integer", (operand, Literal(_WIDTH[target], pa.int64())))
        return Cast(operand, target)

    def written(self, expr: Expr, kind: pa.DataType) -> Expr:
        """Write floating-point numbers as an older Java does; leave others unchanged."""
        return Call("java17_text", (expr,)) if pt.is_floating(kind) else expr

    def moments(self, call: Call, kinds: Sequence[pa.DataType]) -> Expr:
        """Compute differences of instants and added days by local time."""
        left, right = call.args
        zoned = [pt.is_timestamp(k) and k.tz is not None for k in kinds]
        if not any(zoned) or self.zone == "UTC" or self.zone[0] in "+-":
            return call
        if call.op == "sub" and not any(map(pt.is_duration, kinds)):
            return Call("sub", (self.clock(left, kinds[0]), self.clock(right, kinds[1])))
        moment, length = (left, right) if zoned[0] else (right, left)
        if not any(map(pt.is_duration, kinds)):
            return call
        match length:
            case Literal(dt.timedelta() as span, _) if abs(span) < _DAY:
                return call
        signed = Call("neg", (length,)) if call.op == "sub" else length
        return Call("plus_days", (Cast(moment, pa.timestamp("us", self.zone)), signed))

    def clock(self, expr: Expr, kind: pa.DataType) -> Expr:
        if pt.is_timestamp(kind) and kind.tz is not None:
            return Cast(Cast(expr, pa.timestamp("us", self.zone)), pa.timestamp("us"))
        return expr

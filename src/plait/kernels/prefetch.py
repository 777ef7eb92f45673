"""Prefetch a row before it is needed.

A window larger than the caches costs a trip to memory for nearly every row it is asked for. A
kernel that knows early which rows it will read asks for them all and then reads them; the trips
overlap. With windows of 150,000 rows this made linking and probing two to four times faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.kernels.jit import Array, Integer

    def prefetch(array: Array, row: Integer) -> None:
        """Bring the beginning of `array[row]` towards the processor; any row is safe."""

else:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    _READ, _KEEP, _DATA = 0, 3, 1

    @intrinsic
    def prefetch(typing_context: Any, array: Any, row: Any) -> Any:
        """Bring the beginning of `array[row]` towards the processor; any row is safe."""
        del typing_context

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array_type = signature.args[0]
            view = context.make_array(array_type)(context, builder, args[0])
            stride = cgutils.unpack_tuple(builder, view.strides, array_type.ndim)[0]
            base = builder.bitcast(view.data, ir.IntType(8).as_pointer())
            address = builder.gep(base, [builder.mul(stride, args[1])])
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
            call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            builder.call(call, [address, word(_READ), word(_KEEP), word(_DATA)])
            return context.get_dummy_value()

        return types.void(array, types.int64), generate

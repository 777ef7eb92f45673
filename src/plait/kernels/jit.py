"""How kernels are compiled: once, cached on disk, without the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")

Ints = NDArray[np.int64]
Positions = NDArray[np.int32]
Ids = NDArray[np.uint32]
Bytes = NDArray[np.uint8]
Array = NDArray[Any]
Integer = int | np.integer[Any]


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of arrays to machine code at its first call, keeping its type."""
    compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast(Callable[P, R], compiled)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a small helper into the kernels that call it."""
    compiled = numba.njit(inline="always", error_model="numpy")(function)
    return cast(Callable[P, R], compiled)

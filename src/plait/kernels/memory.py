"""Where the arrays of windows live: in this process, or wherever the host of the engine says.

A window asks for every large array it keeps, and says when it no longer needs one. The arrays of
one batch's intermediate results are none of this.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from plait.kernels.jit import Array

Saved = dict[str, Any]
"""What an object consists of, to make another one like it: numbers, texts, lists, arrays.

Every class that lives in an engine says so itself, by `to_state`, and becomes what another one was
by `set_state`, when its constructor has made it. Whatever follows from the query and the plan is
not part of it. A state that does not fit is refused with a ValueError.
"""


class NotSaved(Exception):
    """Something that is under way and has no description."""


class Memory(Protocol):
    """Gives arrays and takes them back."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any] | type) -> Array:
        """A new array; what is in it is undefined."""

    def free(self, array: Array) -> None:
        """An array that `empty` gave is no longer needed."""


class Heap:
    """The memory of this process."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any] | type) -> Array:
        """A numpy array."""
        return np.empty(shape, dtype)

    def free(self, array: Array) -> None:
        """Left to the garbage collector."""


HEAP = Heap()

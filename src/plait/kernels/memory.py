"""Allocate the arrays of windows: in this process, or where the host of the engine says.

A window asks for every large array it keeps, and says when it no longer needs one. The arrays of
one batch's intermediate results are none of this.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from plait.kernels.jit import Array

Saved = dict[str, Any]
"""The description of an object: numbers, texts, lists, arrays.

Every class of an engine writes it by `to_state`, and takes over another object's by `set_state`
after its constructor. Whatever follows from the query and the plan is not part of it. A state that
does not fit is refused with a ValueError.
"""


class NotSaved(Exception):
    """Something is under way that has no description."""


class Memory(Protocol):
    """Gives arrays and takes them back."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any] | type) -> Array:
        """Allocate an array with undefined contents."""

    def free(self, array: Array) -> None:
        """Free an array from `empty`."""


class Heap:
    """The memory of this process."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any] | type) -> Array:
        """A numpy array."""
        return np.empty(shape, dtype)

    def free(self, array: Array) -> None:
        """Left to the garbage collector."""


HEAP = Heap()

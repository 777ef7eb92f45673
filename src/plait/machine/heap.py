"""Keeping freed memory for the next batch, in processes that are ours.

A batch allocates and frees arrays of some megabytes again and again. The C library gives such
memory back to the system at once and asks for it again, and every page of it is then cleared anew:
up to half of the time of a join with many results. A command of ours has its process to itself, and
so has a Python worker of Spark as long as it runs our operator: they keep what they have freed. A
library in somebody else's process does not, because nobody asked it to.
"""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST_FROM_HEAP = 1 << 25
_KEPT = 1 << 27


def keep_freed_memory() -> bool:
    """Have the C library keep up to 128 MiB that were freed; whether it can be told to."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(
        set_option(_MMAP_THRESHOLD, _LARGEST_FROM_HEAP) and set_option(_TRIM_THRESHOLD, _KEPT)
    )

"""The old hash stays what it was: rows in old checkpoints are where it put them."""

from __future__ import annotations

import numpy as np

from plait.kernels.jit import Bytes, Ints
from plait.kernels.unkeyed import unkeyed_integers, unkeyed_strings


def test_hashes_of_integers_as_ever() -> None:
    values: Ints = np.array([0, 1, -1, 42, 2**63 - 1, -(2**63)], np.int64)
    assert unkeyed_integers(values).tolist() == INTEGERS


def test_hashes_of_strings_as_ever() -> None:
    strings = [b"", b"a", b"hello world", b"\0" * 9, b"12345678"]
    data: Bytes = np.frombuffer(b"".join(strings), np.uint8)
    lengths: Ints = np.array([len(s) for s in strings], np.int64)
    assert unkeyed_strings(data, np.cumsum(lengths) - lengths, lengths).tolist() == STRINGS


INTEGERS = [
    0,
    15593811101976350953,
    4073892270073358567,
    3906208342528464917,
    206243555049423535,
    10865295847873400125,
]
STRINGS = [0, 8365988554530469020, 260874998445309644, 10376905045346322637, 2407899709015936577]

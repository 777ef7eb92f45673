"""Codes of byte strings against a dictionary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.kernels.intern import Interner
from plait.kernels.jit import Bytes, Ints

MEGABYTE = 1 << 20
HASH_BITS = pytest.mark.parametrize("hash_bits", [64, 0])


def encode(interner: Interner, strings: Sequence[bytes], gap: bytes = b"") -> list[int]:
    """Encode strings that lie in one array, with some bytes before each of them."""
    data: Bytes = np.frombuffer(b"".join(gap + s for s in strings) + b"\0", np.uint8)
    lengths: Ints = np.array([len(s) for s in strings], np.int64)
    starts = np.cumsum(lengths + len(gap)) - lengths
    return [int(code) for code in interner.encode(data, starts, lengths)]


def assert_exact(codes: Sequence[int], strings: Sequence[bytes]) -> None:
    """Equal strings, equal codes; different strings, different codes."""
    assert len(set(zip(codes, strings, strict=True))) == len(set(strings)) == len(set(codes))


STRINGS = st.one_of(
    st.binary(max_size=3),
    st.sampled_from([b"", b"\0", b"\0\0", b"\0" * 8, b"\0" * 9, b"a" * 8, b"a" * 16, b"a" * 17]),
    st.binary(min_size=7, max_size=18),
)


@given(
    st.lists(st.tuples(st.lists(STRINGS, max_size=30), st.booleans()), max_size=8),
    st.sampled_from((64, 2, 0)),
    st.integers(0, 2**32),
)
def test_oracle_a_dictionary_that_forgets(
    batches: list[tuple[list[bytes], bool]], hash_bits: int, seed: int
) -> None:
    interner, known = Interner(hash_bits), dict[bytes, int]()
    given_out: set[int] = set()
    rng = np.random.default_rng(seed)
    for strings, forget in batches:
        for string, code in zip(strings, encode(interner, strings, b"?"), strict=True):
            if string in known:
                assert code == known[string]
            else:
                assert code not in given_out, "a code given out twice"
            known[string] = code
            given_out.add(code)
        assert len(interner) == len(known)
        if forget:
            kept = [s for s in known if rng.random() < 0.5]
            known = {s: known[s] for s in kept}
            in_use: list[Ints] = [
                np.array([known[s] for s in part] * 2, np.int64) for part in (kept[::2], kept[1::2])
            ]
            interner.forget(in_use)
            assert len(interner) == len(known)


@HASH_BITS
def test_strings_with_a_common_prefix_and_length_are_different(hash_bits: int) -> None:
    words = [b"x" * i + bytes([c]) + b"x" * (20 - i) for i in range(21) for c in (0, 1, 255)]
    words += [b"x" * n for n in range(25)] + [b"\0" * n for n in range(25)]
    interner = Interner(hash_bits)
    codes = encode(interner, words)
    assert_exact(codes, words)
    assert encode(interner, words[::-1], b"--") == codes[::-1], "wherever they lie"


def test_the_table_grows_without_changing_a_code() -> None:
    interner = Interner()
    words = [b"%d" % i for i in range(20_000)]
    codes = [
        code for i in range(0, len(words), 777) for code in encode(interner, words[i : i + 777])
    ]
    assert_exact(codes, words)
    assert encode(interner, words) == codes
    assert len(interner) == len(words)


def test_the_table_grows_in_the_middle_of_a_batch_where_all_collide() -> None:
    interner = Interner(hash_bits=0)
    words = [b"%d" % (i % 700) for i in range(1400)]
    assert_exact(encode(interner, words), words)


@HASH_BITS
def test_megabytes_of_one_string(hash_bits: int) -> None:
    """A string of many heaps, one that differs in its last byte, and one a byte shorter."""
    long = b"ab" * (MEGABYTE // 2)
    words = [b"", long, long[:-1] + b"c", long[:-1], b"a", long, b""]
    interner = Interner(hash_bits)
    codes = encode(interner, words)
    assert_exact(codes, words)
    assert interner.nbytes >= 3 * MEGABYTE
    interner.forget([np.array(codes[:1], np.int64)])
    assert interner.nbytes < MEGABYTE // 10, "their memory is given back"


def test_no_strings() -> None:
    interner = Interner()
    assert encode(interner, []) == []
    interner.forget([])
    assert len(interner) == 0
    assert_exact(encode(interner, [b"", b"a"]), [b"", b"a"])


def test_forgetting_everything_does_not_give_a_code_again() -> None:
    interner = Interner()
    seen: set[int] = set()
    for _ in range(50):
        codes = encode(interner, [b"a", b"b", b"a"])
        assert codes[0] == codes[2] != codes[1]
        assert not seen & set(codes)
        seen |= set(codes)
        interner.forget([])


def test_memory_follows_the_strings_in_use_and_not_those_ever_seen() -> None:
    interner = Interner()
    largest = 0
    for i in range(0, 100_000, 1000):
        codes = encode(interner, [b"key-%d" % k for k in range(i, i + 1000)])
        if interner.crowded:
            interner.forget([np.array(codes, np.int64)])
            assert encode(interner, [b"key-%d" % i]) == codes[:1]
        largest = max(largest, interner.nbytes)
        assert len(interner) <= 5001
    assert largest < 2_000_000


def test_it_is_time_to_forget_when_the_strings_in_use_have_doubled() -> None:
    """So that what forgetting costs is paid for by the strings that came since."""
    interner, crowded = Interner(), []
    codes = encode(interner, [b"%d" % i for i in range(5000)])
    crowded.append(interner.crowded)
    interner.forget([np.array(codes, np.int64)])
    for more in (0, 9_999, 10_000):
        encode(interner, [b"%d" % i for i in range(more)])
        crowded.append(interner.crowded)
    assert crowded == [True, False, False, True]

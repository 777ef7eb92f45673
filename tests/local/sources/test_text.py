"""Blocks of lines, and the search for culprits."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.local.sources.text import culprits, read_lines


@given(st.sets(st.integers(0, 199)), st.integers(1, 200))
def test_culprits_are_found_in_order(bad: set[int], rows: int) -> None:
    def fits(a: int, b: int) -> bool:
        return not any(a <= row < b for row in bad)

    assert culprits(rows, fits, most=rows) == sorted(row for row in bad if row < rows)
    assert len(culprits(rows, fits, most=3)) <= 3


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_blocks_are_whole_lines_and_lose_nothing(tmp_path: Path, size: int, mark: bytes) -> None:
    data = b"a\n\nbcd\ne\rf\nlast"
    path = tmp_path / "t.jsonl"
    path.write_bytes(mark + data)
    blocks = list(read_lines(path, block_bytes=size))
    assert b"".join(block.data for block in blocks) == data
    assert all(block.data.endswith(b"\n") for block in blocks[:-1])
    assert [block.line for block in blocks] == [
        data[: block.end - len(mark) - len(block.data)].count(b"\n") + 1 for block in blocks
    ]
    if size == 100:
        assert len(blocks) == 2, "the last line has no end"

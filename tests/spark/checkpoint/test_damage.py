"""Damage in a copy of the golden checkpoint is found and the file is named."""

from __future__ import annotations

import shutil
import struct
import zlib
from pathlib import Path

import pytest

from plait.spark.checkpoint.damage import find_damage
from plait_lab.laws.golden import CHECKPOINTS

GOLDEN = CHECKPOINTS["format-1"]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """The golden checkpoint, with checksums as Hadoop keeps them on a local disk."""
    copy = shutil.copytree(GOLDEN, tmp_path / "checkpoint")
    for path in [p for p in copy.rglob("*") if p.is_file()]:
        content = path.read_bytes()
        sums = [zlib.crc32(content[at : at + 512]) for at in range(0, len(content), 512)]
        kept = b"crc\0" + struct.pack(f">i{len(sums)}I", 512, *sums)
        (path.parent / f".{path.name}.crc").write_bytes(kept)
    return copy


FILES = sorted(str(p.relative_to(GOLDEN)) for p in GOLDEN.rglob("*") if p.is_file())
UNNEEDED = ("1.changelog",)
"""Spark loads the snapshot of this version."""


def test_a_whole_one_is_whole(checkpoint: Path) -> None:
    assert find_damage(checkpoint) is None
    assert find_damage(GOLDEN) is None, "without checksums too"


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_found(checkpoint: Path, name: str) -> None:
    path = checkpoint / name
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0x04
    path.write_bytes(content)
    assert (found := find_damage(checkpoint)) is not None and str(path) in found
    first = ("offsets", "commits/1", "metadata", "sources/0/1", "sources/1/1")
    logs = name.startswith(first)
    assert (find_damage(checkpoint, state=False) is not None) == logs


@pytest.mark.parametrize("name", FILES)
def test_a_cut_is_found(checkpoint: Path, name: str) -> None:
    path = checkpoint / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert (found := find_damage(checkpoint)) is not None and str(path) in found


@pytest.mark.parametrize("name", [n for n in FILES if not any(u in n for u in UNNEEDED)])
def test_a_missing_file_is_found(checkpoint: Path, name: str) -> None:
    (checkpoint / name).unlink()
    found = find_damage(checkpoint)
    if name.startswith("commits/"):
        assert found is None, "the batch is run again, or Spark has tidied up"
    elif name.endswith("1.zip"):
        assert found == f"{(checkpoint / name).parent} has no snapshot of the state"
    elif "_metadata" in name:
        assert found is not None and "no description" in found
    else:
        assert found is not None and str(checkpoint / name) in found


@pytest.mark.parametrize("name", ["offsets/1", "commits/0", "metadata", "state/0/_metadata/v2/0"])
@pytest.mark.parametrize("content", [b"", b"v1\n", b"v1\n{", b"\xff\xfe", b"v1\n[]", b"nothing"])
def test_other_contents_are_found_without_checksums(
    checkpoint: Path, name: str, content: bytes
) -> None:
    path = checkpoint / name
    path.write_bytes(content)
    (path.parent / f".{path.name}.crc").unlink()
    assert (found := find_damage(checkpoint)) is not None and str(path) in found


def test_a_commit_that_was_copied_has_no_offsets(checkpoint: Path) -> None:
    shutil.copy(checkpoint / "commits" / "1", checkpoint / "commits" / "2")
    found = find_damage(checkpoint, state=False)
    assert found == f"{checkpoint / 'offsets' / '2'} is missing, but the batch was committed"


def test_a_log_that_was_joined_needs_no_earlier_files(checkpoint: Path) -> None:
    (checkpoint / "sources" / "0" / "0").rename(checkpoint / "sources" / "0" / "0.compact")
    assert find_damage(checkpoint) is None
    (checkpoint / "sources" / "0" / "1").unlink()
    found = find_damage(checkpoint, state=False)
    assert found == f"{checkpoint / 'sources' / '0' / '1'} is missing"
    (checkpoint / "sources" / "0" / "1.compact").touch()
    assert find_damage(checkpoint) is None


def test_what_was_left_half_written_is_no_damage(checkpoint: Path) -> None:
    (checkpoint / "state" / "0" / "1" / ".3.changelog.77.tmp").write_bytes(b"half")
    (checkpoint / "state" / "0" / "1" / "..3.changelog.77.tmp.crc").write_bytes(b"")
    assert find_damage(checkpoint) is None


def test_offsets_that_were_copied_are_found(checkpoint: Path) -> None:
    """Spark would go on from where it was at another time."""
    shutil.copy(checkpoint / "offsets" / "0", checkpoint / "offsets" / "1")
    (checkpoint / "offsets" / ".1.crc").unlink()
    found = find_damage(checkpoint, state=False)
    assert found == f"{checkpoint / 'offsets' / '1'} is a copy of another one"


def test_a_log_of_a_source_that_was_copied_tells_another_number(checkpoint: Path) -> None:
    """Spark would read the files that it names a second time."""
    shutil.copy(checkpoint / "sources" / "0" / "1", checkpoint / "sources" / "0" / "2")
    found = find_damage(checkpoint, state=False)
    assert found == f"{checkpoint / 'sources' / '0' / '2'} is a copy of another one"
    (checkpoint / "sources" / "0" / "2").write_text('v1\n{"topic": {"0": 3}}\nno JSON')
    assert find_damage(checkpoint) is None, "other sources have other formats"


def test_damaged_checksums_are_found(checkpoint: Path) -> None:
    sums = checkpoint / "offsets" / ".1.crc"
    for content in (b"", b"crc\0\0\0\2", b"crc\0\0\0\0\0\1\2\3\4", b"xxxx\0\0\2\0\0\0\0\0"):
        sums.write_bytes(content)
        assert (found := find_damage(checkpoint, state=False)) is not None and ".1.crc" in found


def test_nothing_there(tmp_path: Path) -> None:
    assert find_damage(tmp_path) == f"{tmp_path / 'metadata'} is missing"

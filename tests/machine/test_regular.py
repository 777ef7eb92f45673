"""Only regular files below a folder are opened, and nothing waits."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from plait.machine.regular import append_below, folder_below, open_below, read_below

SECRET = b"untouched"


def _link(path: Path) -> None:
    path.symlink_to(path.parents[1] / "secret")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def _device(path: Path) -> None:
    try:
        os.mknod(path, 0o20666, os.makedev(1, 5))  # zeros without end
    except PermissionError:
        pytest.skip("devices are made by root only")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "root").mkdir()
    monkeypatch.chdir(tmp_path / "root")  # paths of sockets are short
    return tmp_path / "root"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_link, "a link"),
        (lambda path: path.symlink_to("nowhere"), "a link"),
        (os.mkfifo, "a FIFO"),
        (Path.mkdir, "a folder"),
        (lambda path: _socket(Path(path.name)), "a socket"),
        (_device, "a device"),
    ],
)
def test_what_is_no_file_is_named_and_not_touched(
    root: Path, make: Callable[[Path], None], said: str
) -> None:
    make(root / "x")
    for use in (lambda: read_below(root, "x"), lambda: append_below(root, "x", b"more\n"),
                lambda: open_below(root, "x", os.O_WRONLY | os.O_CREAT)):  # fmt: skip
        with pytest.raises(OSError, match=f"it is {said}") as found:
            use()
        assert str(root / "x") in str(found.value)
    assert (root.parent / "secret").read_bytes() == SECRET
    assert not (root / "nowhere").exists()


def test_no_folder_below_is_reached_through_a_link(root: Path) -> None:
    (root.parent / "elsewhere").mkdir()
    (root.parent / "elsewhere" / "x").write_bytes(SECRET)
    (root / "folder").symlink_to(root.parent / "elsewhere")
    for use in (lambda: read_below(root, "folder/x"), lambda: append_below(root, "folder/x", b"m")):
        with pytest.raises(OSError, match="it is a link"):
            use()
    for path in ("../elsewhere/x", "folder/../../elsewhere/x"):
        with pytest.raises((OSError, ValueError)):
            read_below(root, path)
    (root.parent / "way").symlink_to(root)
    append_below(root.parent / "way", "y", b"line\n")
    assert (root / "y").read_bytes() == b"line\n", "what leads to the folder is trusted"
    assert (root.parent / "elsewhere" / "x").read_bytes() == SECRET


def test_a_file_with_a_second_name_is_read_and_not_added_to(root: Path) -> None:
    os.link(root.parent / "secret", root / "x")
    assert read_below(root, "x") == SECRET
    with pytest.raises(OSError, match="a second name"):
        append_below(root, "x", b"more\n")
    assert (root.parent / "secret").read_bytes() == SECRET


def test_a_file_that_is_too_large_is_not_read(root: Path) -> None:
    with (root / "x").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match=r"1,099,511,627,776 bytes, more than the 1,000"):
        read_below(root, "x", 1000)


def test_lines_are_added_whole(root: Path) -> None:
    append_below(root, "a/b/x", b"one\n")
    append_below(root, "a/b/x", b"cut off")
    append_below(root, "a/b/x", b"two\n")
    assert read_below(root, "a/b/x") == b"one\ncut off\ntwo\n"


def test_no_handle_is_left_open(root: Path) -> None:
    (root / "link").symlink_to("x")
    before = len(os.listdir("/dev/fd"))
    for _ in range(50):
        append_below(root, "a/x", b"one\n")
        with pytest.raises(OSError):
            read_below(root, "link")
        with pytest.raises(OSError), folder_below(root, "a/nothing/x"):
            pass
    assert len(os.listdir("/dev/fd")) == before

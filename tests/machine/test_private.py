"""Private folders: what others have planted is neither used nor followed nor deleted."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.errors import StorageError
from plait.machine.private import (
    is_private,
    make_private,
    open_beside,
    open_private,
    remove_private,
)

STRANGER = 65_534
"""A user who is nobody."""

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can make files that belong to another user"
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with open_private(tmp_path / "new") as folder:
            folder.folder("inner").close()
            folder.write("file", b"content")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == mode(tmp_path / "new/inner") == 0o700
    assert mode(tmp_path / "new/file") == 0o600


def test_a_folder_that_others_may_read_is_tightened(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(0o755)
    with open_private(tmp_path / "mine"):
        assert mode(tmp_path / "mine") == 0o700


@pytest.mark.parametrize("bits", [0o770, 0o702, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, bits: int) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine").chmod(bits)
    with pytest.raises(StorageError, match=f"others may write .*mode is {bits:o}.*remove it"):
        open_private(tmp_path / "mine")


def test_a_link_is_refused_even_to_a_private_folder_of_ours(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(0o700)
    (tmp_path / "name").symlink_to("target")
    with pytest.raises(StorageError, match=r"name is a link of .*TMPDIR"):
        open_private(tmp_path / "name")
    with pytest.raises(StorageError, match="link"):
        open_private(tmp_path / "name", create=False)


def test_a_link_below_a_private_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(0o700)
    with open_private(tmp_path / "base") as base:
        (tmp_path / "base/name").symlink_to("../target")
        with pytest.raises(StorageError, match="link"):
            base.folder("name")


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "name").write_text("")
    with pytest.raises(StorageError, match="no folder"):
        open_private(tmp_path / "name")


@needs_root
def test_a_foreign_folder_is_refused_with_its_owner(tmp_path: Path) -> None:
    (tmp_path / "name").mkdir(0o700)
    os.chown(tmp_path / "name", STRANGER, STRANGER)
    with pytest.raises(StorageError, match=rf"name belongs to .*uid {STRANGER}.*TMPDIR"):
        open_private(tmp_path / "name")
    assert not is_private(tmp_path / "name")


@needs_root
def test_a_foreign_link_is_refused_with_its_owner(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(0o700)
    (tmp_path / "name").symlink_to(tmp_path / "target")
    os.lchown(tmp_path / "name", STRANGER, STRANGER)
    with pytest.raises(StorageError, match=rf"link of .*uid {STRANGER}"):
        open_private(tmp_path / "name")


def test_the_handle_stays_where_it_was_when_the_name_is_exchanged(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    with open_private(tmp_path / "name") as folder:
        (tmp_path / "name").rename(tmp_path / "moved")
        (tmp_path / "name").symlink_to("victim")
        folder.write("file", b"content")
        assert (tmp_path / "moved/file").read_bytes() == b"content"
        assert not list((tmp_path / "victim").iterdir())


def test_files_are_not_reached_through_links(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("untouched")
    with open_private(tmp_path / "name") as folder:
        (tmp_path / "name/file").symlink_to(secret)
        (tmp_path / "name/other.new").symlink_to(secret)
        assert not folder.has("file")
        with pytest.raises(OSError, match="a link"):
            folder.read("file")
        folder.write("other", b"content")
        folder.write("file", b"content")
        assert folder.read("file") == b"content", "the link was replaced, not followed"
    assert secret.read_text() == "untouched"


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/etc", "a\0b"])
def test_names_are_no_paths(tmp_path: Path, name: str) -> None:
    with open_private(tmp_path / "base") as base:
        for use in (base.folder, base.read, base.unlink, base.remove, base.write, base.stat):
            with pytest.raises(ValueError, match="no plain file name"):
                use(name)


def test_removing_does_not_follow_links(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("")
    with open_private(tmp_path / "base") as base:
        base.folder("run").close()
        (tmp_path / "base/run/link").symlink_to(victim)
        (tmp_path / "base/direct").symlink_to(victim)
        base.remove("run")
        base.remove("direct")
        assert not (tmp_path / "base/run").exists()
        base.clear()
        assert base.names() == []
    assert (victim / "precious").exists()


def test_removing_leaves_alone_what_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim/precious").write_text("")
    (tmp_path / "name").symlink_to("victim")
    remove_private(tmp_path / "name")
    remove_private(tmp_path / "missing")
    assert (tmp_path / "victim/precious").exists()
    made = make_private("plait-test-")
    (made / "folder").mkdir()
    remove_private(made)
    assert not made.exists()


def test_beside_a_name_that_is_taken_all_processes_find_the_same(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "name").symlink_to("victim")
    (tmp_path / "name.0").symlink_to("victim")
    with pytest.raises(StorageError):
        open_beside(tmp_path / "name", create=False)
    with open_beside(tmp_path / "name") as one, open_beside(tmp_path / "name") as two:
        assert one.path == two.path != tmp_path / "name"
        assert one.path.parent == tmp_path
        assert mode(one.path) == 0o700
    assert not list((tmp_path / "victim").iterdir())


@needs_root
def test_beside_a_name_a_foreign_folder_is_passed_over(tmp_path: Path) -> None:
    for name in ("name", "name.0"):
        (tmp_path / name).mkdir(0o700)
        os.chown(tmp_path / name, STRANGER, STRANGER)
    with open_beside(tmp_path / "name") as folder:
        assert folder.path.name not in {"name", "name.0"}


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A folder like /tmp: all may write, only owners delete."""
    with tempfile.TemporaryDirectory(prefix="plait-test-") as made:
        Path(made).chmod(0o1777)
        yield Path(made)


_BECOME = f"""
import os, sys
os.setgroups([])
os.setgid({STRANGER})
os.setuid({STRANGER})
"""
"""As root first, because another user may not be able to start this very Python."""
_PLANT = """
os.chdir(sys.argv[1])
os.mkdir("folder", 0o777)
os.chmod("folder", 0o777)
os.symlink(sys.argv[2], "link")
"""
_LOOK = """
try:
    os.listdir(sys.argv[1])
except PermissionError:
    sys.exit(13)
"""


def as_stranger(script: str, *arguments: Path) -> int:
    """Run a script as another user; its exit code."""
    command = [sys.executable, "-I", "-S", "-c", _BECOME + script, *map(str, arguments)]
    return subprocess.run(command, check=False).returncode


@pytest.mark.slow
@needs_root
def test_a_real_stranger_can_plant_but_gets_nothing(everybodys: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(0o700)
    assert as_stranger(_PLANT, everybodys, victim) == 0
    for name in ("folder", "link"):
        with pytest.raises(StorageError, match=f"uid {STRANGER}"):
            open_private(everybodys / name)
        with open_beside(everybodys / name) as folder:
            folder.write("file", b"content")
            assert as_stranger(_LOOK, folder.path) == 13
    assert not list((everybodys / "folder").iterdir())
    assert not list(victim.iterdir())

"""Which Java Spark gets: an installed one, else the packaged one, else an error that helps."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from plait.cli import main
from plait.errors import MissingRequirement
from plait.spark.environment import java


def fake(where: Path, version: str) -> str:
    """A Java that can do nothing but tell about itself; its home."""
    (where / "bin").mkdir(parents=True)
    program = where / "bin" / "java"
    said = f'openjdk version "{version}"\\n    java.home = {where}\\n'
    program.write_text(f"#!/bin/sh\nprintf '{said}' >&2\n")
    program.chmod(0o755)
    return str(where)


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on its PATH, whose packaged Java prints what it is given."""
    runtime = tmp_path / "the runtime's"
    (runtime / "bin").mkdir(parents=True)
    program = runtime / "bin" / "java"
    program.write_text('#!/bin/sh\nfor a do echo "<$a>"; done\n')
    program.chmod(0o755)
    monkeypatch.setattr(java, "packaged_runtime", lambda: runtime)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return runtime


@pytest.fixture
def nothing(packaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any Java."""
    monkeypatch.setattr(java, "packaged_runtime", lambda: None)


def test_an_installed_java_is_preferred(
    packaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = fake(tmp_path / "17", "17.0.1")
    monkeypatch.setenv("PATH", f"{there}/bin")
    assert java.provide_java() == there
    assert "JAVA_HOME" not in os.environ, "Spark finds it by itself"
    chosen = fake(tmp_path / "21", "21")
    monkeypatch.setenv("JAVA_HOME", chosen)
    assert java.provide_java() == chosen == os.environ["JAVA_HOME"]
    assert not (tmp_path / "cache").exists()


def test_an_old_java_in_java_home_gives_way_to_a_newer_one_on_the_path(
    packaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", fake(tmp_path / "8", "1.8.0_402"))
    there = fake(tmp_path / "17", "17.0.1")
    monkeypatch.setenv("PATH", f"{there}/bin")
    assert java.provide_java() == there
    assert "JAVA_HOME" not in os.environ, "Spark would take the old one"


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402", "?", None])
def test_the_packaged_java_stands_in(
    version: str | None, packaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if version is not None:
        monkeypatch.setenv("JAVA_HOME", fake(tmp_path / "old", version))
    home = java.provide_java()
    assert home == os.environ["JAVA_HOME"]
    assert Path(home).parent == tmp_path / "cache" / "plait"
    assert java.missing() == ""


def test_the_launcher_drops_one_argument_and_nothing_else(packaged: Path) -> None:
    home = java.launcher_home(packaged)
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "--add-modules=java.sql", "a  b", "*"]
    ran = subprocess.run([home / "bin" / "java", *given], capture_output=True, check=True)
    kept = [text for text in given if "vector" not in text]
    assert ran.stdout.decode().splitlines() == [f"<{text}>" for text in kept]
    assert (home / "lib").readlink() == packaged / "lib"
    assert (home / "conf").readlink() == packaged / "conf"


def test_the_launcher_is_made_once_and_again_if_it_is_damaged(
    packaged: Path, tmp_path: Path
) -> None:
    home = java.launcher_home(packaged)
    made = home.stat().st_ino
    assert java.launcher_home(packaged).stat().st_ino == made
    (home / "bin" / "java").unlink()
    assert java.launcher_home(packaged) == home
    assert os.access(home / "bin" / "java", os.X_OK)
    other = java.launcher_home(packaged.parent)
    assert other != home, "another runtime has another launcher"
    assert sorted(home.parent.iterdir()) == sorted([home, other]), "no drafts are left"


def test_without_a_cache_it_is_private_among_the_temporary_files(
    packaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("no folder")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    home = java.launcher_home(packaged)
    assert home.parent == tmp_path / f"plait-{os.geteuid()}"
    assert home.stat().st_mode & 0o077 == home.parent.stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("nothing")
def test_no_java_at_all() -> None:
    with pytest.raises(MissingRequirement, match="17 or newer, and no Java was found; pip install"):
        java.provide_java()
    assert "apt-get install openjdk-17-jre-headless" in java.missing()


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize(("version", "told"), [("11.0.2", "is Java 11"), ("?", "tells no version")])
def test_an_old_java_is_named(
    version: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", fake(tmp_path / "old", version))
    with pytest.raises(MissingRequirement, match=f"old/bin/java {told}"):
        java.provide_java()
    assert "JAVA_HOME" in os.environ


def test_the_command_prints_it(packaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "java"]) == 0
    assert capsys.readouterr().out == f"{java.launcher_home(packaged)}\n"


@pytest.mark.parametrize(("text", "shortest"), [("2.0E23", True), ("1.9999999999999998E23", False)])
def test_a_session_is_asked_once_how_its_java_writes_numbers(text: str, shortest: bool) -> None:
    class Session:
        asked = 0

        def sql(self, query: str) -> Session:
            self.asked += 1
            return self

        def collect(self) -> list[tuple[str]]:
            return [(text,)]

    session: Any = Session()
    assert [java.writes_shortest(session) for _ in range(2)] == [shortest] * 2
    assert session.asked == 1

"""Which Java is found, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.hosts.spark import java


def fake(where: Path, version: str) -> None:
    """A Java that can do nothing but tell its version."""
    (where / "bin").mkdir()
    program = where / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("version", "said"),
    [("17.0.1", ""), ("21", ""), ("11.0.2", "only Java 11 was found"), ("?", "no Java was found")],
)
def test_the_java_in_java_home(
    version: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert said in java.missing()
    assert bool(said) == bool(java.missing())


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java.java_version() is None
    assert "apt-get install openjdk-17-jre-headless" in java.missing()

"""Hosts in namespaces: apart from each other, cut off, killed, and gone without a trace."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration import namespaces
from tests.integration.cluster import Cluster
from tests.integration.namespaces import Host, cut, make_switch, mend, plug, start_host

_MISSING = namespaces.missing()
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(_MISSING is not None, reason=str(_MISSING)),
]

_PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
_CONNECT = """
import socket, sys
with socket.socket() as one:
    one.settimeout(2)
    try:
        one.connect((sys.argv[1], 9))
    except OSError as error:
        print(type(error).__name__)
"""


class Hosts:
    """Some hosts and their switch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.all: list[Host] = []
        (folder / "names").write_text("127.0.0.1 localhost\n", encoding="utf-8")
        self.switch = self.start("switch", "10.97.0.1")
        make_switch(self.switch)

    def start(self, name: str, address: str, hidden: tuple[Path, ...] = ()) -> Host:
        names = self.folder / "names"
        disk = self.folder / name
        return start_host(
            name, address, disk, names, record=self.all.append, seen={}, hidden=hidden
        )

    def plugged(self, name: str, address: str, hidden: tuple[Path, ...] = ()) -> Host:
        host = self.start(name, address, hidden)
        plug(self.switch, host)
        return host


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    """All of them end with the test."""
    made = Hosts(tmp_path)
    try:
        yield made
    finally:
        for host in made.all:
            host.kill()


def _said(host: Host, *command: str) -> str:
    done = subprocess.run(host.command(command, _PATH), capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip()


def _reach(one: Host, other: Host) -> str:
    """A host that answers refuses: nobody listens there."""
    python = os.path.realpath(sys.executable)
    return _said(one, python, "-c", _CONNECT, other.address)


def test_hosts_see_nothing_of_each_other(hosts: Hosts, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file").touch()
    one = hosts.plugged("one", "10.97.0.11", (secret,))
    two = hosts.plugged("two", "10.97.0.12")
    for folder in ("/tmp", "/dev/shm"):
        _said(one, "touch", f"{folder}/of-one")
        assert _said(one, "ls", folder) == "of-one"
        assert _said(two, "ls", folder) == ""
        assert not Path(folder, "of-one").exists()
    assert _said(one, "hostname") == "one"
    assert _said(one, "ls", str(secret)) != "file"
    assert "HOME" not in _said(one, "env")
    assert _said(one, "ip", "route").splitlines() == [
        "10.97.0.0/24 dev eth0 proto kernel scope link src 10.97.0.11"
    ], "there is no way out"


def test_a_cut_is_between_two_hosts_only(hosts: Hosts) -> None:
    one, two, three = (hosts.plugged(f"host{i}", f"10.97.0.{10 + i}") for i in (1, 2, 3))
    assert _reach(one, two) == "ConnectionRefusedError"
    cut(one, two)
    assert _reach(one, two) == "TimeoutError"
    assert _reach(one, three) == _reach(two, three) == "ConnectionRefusedError"
    mend(one, two)
    assert _reach(one, two) == "ConnectionRefusedError"


def test_a_host_dies_with_all_its_processes_and_comes_back(hosts: Hosts) -> None:
    one, two = hosts.plugged("one", "10.97.0.11"), hosts.plugged("two", "10.97.0.12")
    two.begin(["sleep", "1000"], _PATH)
    (sleeper,) = _said(two, "pgrep", "-f", "sleep 1000").split()
    assert int(sleeper) > 1
    two.kill()
    assert not two.alive and _reach(one, two) in ("TimeoutError", "OSError")
    again = hosts.plugged("two", "10.97.0.12")
    # The question where it is may still be open, asked while it was dead: once it ends in «no
    # route to host», the next one is answered.
    assert any(_reach(one, again) == "ConnectionRefusedError" for _ in range(5))
    assert "sleep 1000" not in _said(again, "ps", "ax")


def test_a_cluster_is_stopped_by_its_record_alone(hosts: Hosts, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "cluster")
    cluster.place.mkdir()
    one = hosts.start("one", "10.97.0.11")
    cluster._record(one)
    gone = Host("gone", "10.97.0.12", one.process, one.began + 1)
    cluster._record(gone)  # the number of its process belongs to another one now
    found = Cluster.at(cluster.place)
    assert found.hosts == {"one": one, "gone": gone}
    gone.kill()
    assert [gone.alive, one.alive] == [False, True], "whose number it was is left alone"
    found.stop()
    assert [one.alive, cluster.place.exists()] == [False, False]
    Cluster.at(cluster.place).stop()

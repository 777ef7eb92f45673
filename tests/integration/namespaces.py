"""Hosts on one machine: each has its own network, processes, name and temporary folders.

A host is a process in namespaces of its own. It is process 1 of its host, so killing it kills
everything that runs there, and with the last process its network and its mounts vanish too: nothing
has to be tidied up, however the host ended. Hosts are plugged into a switch, a bridge in a network
namespace of its own. The networks of this machine are not touched, and nothing leaves the switch.

It needs Linux, root, `ip` (iproute2), `unshare` and `nsenter` (util-linux).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TOOLS = ("ip", "unshare", "nsenter", "mount")
_NOBODY = "02:00:00:00:00:00"
"""An Ethernet address that no host has: what is sent there is lost."""
_SECONDS_TO_DIE = 10.0

_BEGIN = """
set -euo pipefail
name=$1 names=$2 disk=$3
shift 3
hostname "$name"
mount -t tmpfs -o size=1m tmpfs /srv
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  mkdir "/srv/$1"
  mount --bind "$2" "/srv/$1"
  mount -o remount,bind,ro "/srv/$1"
  shift 2
done
shift
mkdir /srv/disk
mount --bind "$disk" /srv/disk
mount --bind "$names" /etc/hosts
for hidden; do mount -t tmpfs -o ro,size=4k tmpfs "$hidden"; done
mount -t tmpfs -o size=3g tmpfs /tmp
mount -t tmpfs -o size=1g tmpfs /dev/shm
ip link set lo up
echo ready
read -r recorded
exec >&- <&-
sleep infinity &
while :; do wait -n || true; done
"""
"""What process 1 of a host does; bash also reaps those whose parents have died.

It goes on only when its number has been recorded, and ends if the one who starts it dies before.
"""


def missing() -> str | None:
    """Why hosts cannot be made here; None if they can."""
    if not sys.platform.startswith("linux"):
        return "network namespaces are Linux's"
    if os.geteuid() != 0:
        return "only root makes network namespaces: run it with sudo, or in a container as root"
    gone = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if gone:
        return f"{gone[0]} is not installed: apt-get install iproute2 util-linux"
    return None


@dataclass(frozen=True, slots=True)
class Host:
    """A host that was started."""

    name: str
    address: str
    process: int
    """Its process 1, as this machine counts."""
    began: int
    """When that process began, which tells it from another one with the same number."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Host:
        """From what was recorded."""
        return cls(str(told["name"]), str(told["address"]), told["process"], told["began"])

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return _began(self.process) == self.began

    def kill(self) -> None:
        """All its processes at once, with signal 9; nothing if it is dead."""
        if not self.alive:
            return
        os.kill(self.process, signal.SIGKILL)
        until = time.monotonic() + _SECONDS_TO_DIE
        while self.alive:
            if time.monotonic() > until:
                raise TimeoutError(f"the host {self.name} (process {self.process}) does not die")
            time.sleep(0.01)

    def command(
        self, command: Sequence[str], environment: Mapping[str, str], folder: str = "/tmp"
    ) -> list[str]:
        """The command line that runs a command there; nothing of this environment is passed on."""
        return [
            *self._enter("--net", "--mount", "--pid", "--uts"),
            *("env", "-i", f"--chdir={folder}"),
            *(f"{name}={value}" for name, value in environment.items()),
            *command,
        ]

    def begin(
        self, command: Sequence[str], environment: Mapping[str, str], log: str = "/srv/disk/log"
    ) -> None:
        """Start a command there that goes on when this process has ended."""
        script = 'log=$1; shift; "$@" >>"$log" 2>&1 </dev/null &'
        ran = self.command(["bash", "-c", script, "bash", log, *command], environment)
        subprocess.run(ran, check=True)

    def ip(self, *arguments: str) -> None:
        """Change its network."""
        subprocess.run([*self._enter("--net"), "ip", *arguments], check=True, capture_output=True)

    def _enter(self, *spaces: str) -> list[str]:
        return ["nsenter", f"--target={self.process}", *spaces]


def start_host(
    name: str,
    address: str,
    disk: Path,
    names: Path,
    *,
    record: Callable[[Host], None],
    seen: Mapping[str, Path],
    hidden: Sequence[Path] = (),
) -> Host:
    """A new host with no network yet, which is given to `record` before it can do anything.

    `disk` is what it has at `/srv/disk`, `names` its `/etc/hosts`, `seen` what it sees read-only
    below `/srv`, and `hidden` what it does not see.
    """
    disk.mkdir(parents=True, exist_ok=True)
    spaces = ("--mount", "--net", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child")
    shown = [text for at, path in seen.items() for text in (at, str(path))]
    begin = [name, str(names), str(disk), *shown, "--", *map(str, hidden)]
    with (disk / "begin.log").open("wb") as log:
        made = subprocess.Popen(
            ["unshare", *spaces, "bash", "-c", _BEGIN, "bash", *begin],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # an interrupt of this process is not one of the host
        )
    assert made.stdin is not None and made.stdout is not None
    with made.stdin, made.stdout:
        if made.stdout.readline() != b"ready\n":
            made.wait()
            said = (disk / "begin.log").read_text(encoding="utf-8").strip()
            raise RuntimeError(f"the host {name} did not start: {said}")
        children = Path(f"/proc/{made.pid}/task/{made.pid}/children")
        process = int(children.read_text(encoding="ascii").split()[0])
        host = Host(name, address, process, _began(process) or 0)
        record(host)
        made.stdin.write(b"recorded\n")
    return host


def make_switch(switch: Host) -> None:
    """Let a host be the one that others are plugged into."""
    switch.ip("link", "add", "bridge", "type", "bridge")
    switch.ip("link", "set", "bridge", "up")


def plug(switch: Host, host: Host) -> None:
    """Give a host its address on a switch.

    Its Ethernet address follows from it, so that others find a host that was started again.
    """
    port = f"to-{host.name}"
    with suppress(subprocess.CalledProcessError):
        switch.ip("link", "delete", port)  # the system removes the cable of a dead one, but later
    hardware = "02:00:" + ":".join(f"{int(part):02x}" for part in host.address.split("."))
    far = ("peer", "name", "eth0", "address", hardware, "netns", str(host.process))
    switch.ip("link", "add", port, "type", "veth", *far)
    switch.ip("link", "set", port, "master", "bridge", "up")
    host.ip("address", "add", f"{host.address}/24", "dev", "eth0")
    host.ip("link", "set", "eth0", "up")


def cut(one: Host, other: Host) -> None:
    """Lose everything that two hosts send to each other, without telling them."""
    for a, b in ((one, other), (other, one)):
        a.ip(
            "neighbour", "replace", b.address, "lladdr", _NOBODY, "dev", "eth0", "nud", "permanent"
        )


def mend(one: Host, other: Host) -> None:
    """Undo `cut`."""
    for a, b in ((one, other), (other, one)):
        a.ip("neighbour", "delete", b.address, "dev", "eth0")


def _began(process: int) -> int | None:
    """When a process began, in ticks since the machine did; None if it is not there or a corpse."""
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = told.rpartition(")")[2].split()
    return None if state in "ZX" else int(fields[18])

"""A test cluster on one machine: Spark's master and workers, a driver's host, a store, and Kafka.

    ./dev cluster start [--workers 3]
    ./dev cluster run COMMAND...
    ./dev cluster status
    ./dev cluster stop

Each is a host of its own (`namespaces`); they have nothing in common but the object store and the
broker. Workers and driver see Java, Spark and its jars for S3 and Kafka, as on a real cluster, and
neither this repository nor its environment: what they need of Python comes with `spark.archives`
(`shipped`). `run` runs a command on the driver's host, in a folder where that environment is, too.
Everything is recorded in one folder; who stops the cluster needs no more.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path

from tests.integration import namespaces, shipped
from tests.integration.namespaces import Host, cut, make_switch, mend, plug, start_host

from plait_lab.kafka import broker

_NET = "10.97.0"
_SWITCH, STORE, MASTER, DRIVER, KAFKA = "switch", "store", "master", "driver", "kafka"
_ADDRESSES = {
    name: f"{_NET}.{number}"
    for number, name in enumerate((_SWITCH, STORE, MASTER, DRIVER, KAFKA), start=1)
}
_FIRST_WORKER = 11
END_POINT = f"http://{_ADDRESSES[STORE]}:9000"
_KAFKA_PORT, _CONTROLLER_PORT = 9092, 9093
BROKER = f"{_ADDRESSES[KAFKA]}:{_KAFKA_PORT}"
MASTER_URL = f"spark://{_ADDRESSES[MASTER]}:7077"
_DAEMONS = "org.apache.spark.deploy"
_SMALL_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Many processes start on few cores, and none lives long."""
_WORKER_MEMORY = "1536m"
_PATIENCE = 120.0
_SYSTEM = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}
_CREDENTIALS = {
    "AWS_ENDPOINT_URL": END_POINT,
    "AWS_ALLOW_HTTP": "true",
    "AWS_ACCESS_KEY_ID": "somebody",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
}
"""What a process needs to reach the store; the server of the tests takes any key."""

USUAL_PLACE = shipped.HOME / "cluster"


class ClusterError(RuntimeError):
    """The cluster cannot do that; the message says why."""


def missing() -> str | None:
    """Why a cluster cannot be started here; None if it can."""
    if found := namespaces.missing():
        return found
    fetch = "./dev setup --integration fetches what it needs"
    if find_spec("moto") is None:
        return f"moto is missing: {fetch}"
    if not (shipped.HOME / "jars").is_dir():
        return f"hadoop-aws is missing: {fetch}"
    return broker.missing() or shipped.missing()


def settings() -> dict[str, str]:
    """What a session on the cluster is started with; the deployment guide explains it."""
    return {
        "spark.master": MASTER_URL,
        "spark.driver.host": _ADDRESSES[DRIVER],
        "spark.executor.cores": "1",
        "spark.executor.memory": "1g",
        "spark.driver.extraJavaOptions": _SMALL_JAVA,
        "spark.executor.extraJavaOptions": _SMALL_JAVA,
        "spark.archives": "/srv/shipped/environment.tar.gz#environment",
        "spark.driver.extraClassPath": "/srv/jars/*:/srv/connector/*",
        "spark.executor.extraClassPath": "/srv/jars/*:/srv/connector/*",
        **{f"spark.executorEnv.{name}": value for name, value in _CREDENTIALS.items()},
        "spark.hadoop.fs.s3a.endpoint": END_POINT,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.input.stream.type": "classic",
        # Hadoop's parallel client and the server of the tests wait for each other.
        "spark.hadoop.fs.s3a.optimized.copy.from.local.enabled": "false",
        "spark.hadoop.fs.s3a.connection.expect.continue": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


@dataclass(slots=True)
class Cluster:
    """The hosts that are recorded in a folder, dead or alive."""

    place: Path
    hosts: dict[str, Host] = field(default_factory=dict)

    @classmethod
    def at(cls, place: Path) -> Cluster:
        """What was recorded there; nothing if there is no record."""
        try:
            told = json.loads((place / "hosts.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            told = []
        return cls(place, {one["name"]: Host.of(one) for one in told})

    @property
    def workers(self) -> list[str]:
        """Their names."""
        return [name for name in self.hosts if name not in _ADDRESSES]

    # -- start and stop

    def start(self, workers: int = 3) -> None:
        """Start everything anew."""
        if found := missing():
            raise ClusterError(found)
        self.stop()
        environment = shipped.archive()
        self.place.mkdir(parents=True)
        os.link(environment, _made(self.place / "shipped") / "environment.tar.gz")
        addresses = {f"worker{i + 1}": f"{_NET}.{_FIRST_WORKER + i}" for i in range(workers)}
        named = {**_ADDRESSES, **addresses, "localhost": "127.0.0.1"}
        lines = [f"{address}\t{name}\n" for name, address in named.items()]
        (self.place / "names").write_text("".join(lines), encoding="utf-8")
        make_switch(self._add(_SWITCH, _ADDRESSES[_SWITCH]))
        for name in (STORE, KAFKA, MASTER, DRIVER):
            plug(self.hosts[_SWITCH], self._add(name, _ADDRESSES[name]))
        self._serve_messages()
        self._serve_objects()
        at = ("--host", _ADDRESSES[MASTER], "--port", "7077", "--webui-port", "8080")
        self._daemon(MASTER, "master.Master", *at)
        for name, address in addresses.items():
            self.start_worker(name, address)
        self._wait_for("all workers", lambda: self.registered() == workers)

    def stop(self) -> None:
        """Kill what is recorded and remove the record; also after a start that failed."""
        for host in self.hosts.values():
            host.kill()
        self.hosts.clear()
        if self.place.exists():
            shutil.rmtree(self.place)

    def start_worker(self, name: str, address: str | None = None) -> None:
        """Start a worker's host, for the first time or after its death, with empty disks."""
        address = address or self.hosts[name].address
        if name in self.hosts and self.hosts[name].alive:
            raise ClusterError(f"the host {name} is running")
        with suppress(FileNotFoundError):
            shutil.rmtree(self.place / name)
        plug(self.hosts[_SWITCH], self._add(name, address))
        given = ("--cores", "1", "--memory", _WORKER_MEMORY, "--work-dir", "/srv/disk/work")
        self._daemon(name, "worker.Worker", "--host", address, *given, MASTER_URL)

    def _add(self, name: str, address: str) -> Host:
        """Start a host."""
        seen, hidden = dict[str, Path](), list[Path]()
        if name not in (_SWITCH, STORE, KAFKA):
            import pyspark

            seen = {
                "spark": Path(pyspark.__file__).parent,
                "jars": shipped.HOME / "jars",
                "connector": broker.CONNECTOR,
            }
            hidden = [shipped.ROOT]
            if not Path(sys.prefix).is_relative_to(shipped.ROOT):
                hidden.append(Path(sys.prefix))
        if name == DRIVER:
            seen |= {"shipped": self.place / "shipped", "environment": shipped.ENVIRONMENT}
            _made(self.place / name).joinpath("environment").symlink_to("/srv/environment")
        return start_host(
            name,
            address,
            self.place / name,
            self.place / "names",
            record=self._record,
            seen=seen,
            hidden=hidden,
        )

    def _record(self, host: Host) -> None:
        self.hosts[host.name] = host
        draft = self.place / "hosts.json.new"
        draft.write_text(json.dumps([asdict(h) for h in self.hosts.values()]), encoding="utf-8")
        draft.replace(self.place / "hosts.json")

    # -- what runs on the hosts

    def _serve_messages(self) -> None:
        """The broker of Kafka, which is soon there."""
        host = self.hosts[KAFKA]
        settings = self.place / KAFKA / "server.properties"
        at = (host.address, _KAFKA_PORT, _CONTROLLER_PORT)
        settings.write_text(broker.properties(Path("/srv/disk/messages"), *at), encoding="utf-8")
        prepare, serve = broker.commands(Path("/srv/disk", settings.name))
        subprocess.run(host.command(prepare, _SYSTEM), check=True, capture_output=True)
        host.begin(serve, _SYSTEM)

    def _serve_objects(self) -> None:
        """The object store, with one bucket; like Kafka's, its host sees this environment."""
        server = str(Path(__file__).with_name("s3_server.py"))
        address, _, port = END_POINT.removeprefix("http://").partition(":")
        self.hosts[STORE].begin([sys.executable, server, address, port], _SYSTEM)
        make = (
            "import urllib.request as r; "
            f"r.urlopen(r.Request('{END_POINT}/bucket', method='PUT')).read()"
        )
        ask = self.hosts[STORE].command([sys.executable, "-c", make], _SYSTEM)
        self._wait_for(
            "the store",
            lambda: not subprocess.run(ask, capture_output=True, check=False).returncode,
        )

    def _daemon(self, name: str, what: str, *arguments: str) -> None:
        """One of Spark's processes."""
        own = {
            "SPARK_LOCAL_IP": self.hosts[name].address,
            "SPARK_LOCAL_DIRS": "/srv/disk/local",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _SMALL_JAVA,
        }
        start = ["/srv/spark/bin/spark-class", f"{_DAEMONS}.{what}", *arguments]
        self.hosts[name].begin(start, {**_SYSTEM, **_spark(), **own})

    def command(self, command: Sequence[str], environment: Mapping[str, str] = {}) -> list[str]:
        """The command line that runs a command on the driver's host."""
        if DRIVER not in self.hosts or not self.hosts[DRIVER].alive:
            raise ClusterError("the driver's host is not running; ./dev cluster start starts it")
        own = {
            "PATH": f"/srv/spark/bin:{_SYSTEM['PATH']}",
            "SPARK_LOCAL_IP": _ADDRESSES[DRIVER],
            "SPARK_LOCAL_DIRS": "/srv/disk/local",
            # Relative to where an executor, or the driver, runs.
            "PYSPARK_PYTHON": "./environment/bin/python",
        }
        all_of_it = {**_SYSTEM, **_spark(), **own, **_CREDENTIALS, **environment}
        return self.hosts[DRIVER].command(command, all_of_it, "/srv/disk")

    def messages(self, asked: Mapping[str, object]) -> str:
        """Ask the script for messages (`kafka_broker`) something, on the broker's host."""
        run = [sys.executable, "-m", "tests.integration.kafka_broker", BROKER]
        command = self.hosts[KAFKA].command(run, _SYSTEM, str(shipped.ROOT))
        done = subprocess.run(
            command, input=json.dumps(asked), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ClusterError(f"Kafka: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def registered(self) -> int:
        """The workers that the master counts as alive."""
        page = f"import urllib.request as r; print(r.urlopen('http://{MASTER}:8080/json').read())"
        ask = self.command(["environment/bin/python", "-c", page])
        found = subprocess.run(ask, capture_output=True, text=True, check=False).stdout
        return found.count('"state" : "ALIVE"')

    def _wait_for(self, what: str, there: Callable[[], bool]) -> None:
        until = time.monotonic() + _PATIENCE
        while not there():
            if time.monotonic() > until:
                raise ClusterError(f"{what} did not start; see the logs in {self.place}")
            time.sleep(0.5)

    # -- what goes wrong

    def cut(self, one: str, other: str) -> None:
        """Lose everything between two hosts."""
        cut(self.hosts[one], self.hosts[other])

    def mend(self, one: str, other: str) -> None:
        """Undo `cut`."""
        mend(self.hosts[one], self.hosts[other])


def _spark() -> dict[str, str]:
    found = {"SPARK_HOME": "/srv/spark"}
    home = os.environ.get("JAVA_HOME")
    return {**found, "JAVA_HOME": home} if home else found


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _status(cluster: Cluster) -> Iterator[str]:
    for host in cluster.hosts.values():
        yield f"{host.name:<8} {host.address:<12} {'up' if host.alive else 'dead'}"
    if not cluster.hosts:
        yield "there is no cluster; ./dev cluster start starts one"


def main(arguments: Sequence[str] | None = None) -> int:
    """`./dev cluster`."""
    parser = argparse.ArgumentParser(prog="./dev cluster")
    parser.add_argument("--at", type=Path, default=USUAL_PLACE, help="where it is recorded")
    known = parser.add_subparsers(dest="command", required=True)
    start = known.add_parser("start", help="start it anew")
    start.add_argument("--workers", type=int, default=3)
    run = known.add_parser("run", help="run a command on the driver's host")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    known.add_parser("status", help="what is running")
    known.add_parser("stop", help="end it, whatever is left of it")
    given = parser.parse_args(arguments)
    cluster = Cluster.at(given.at)
    try:
        match given.command:
            case "start":
                cluster.start(given.workers)
            case "run":
                return subprocess.run(cluster.command(given.words), check=False).returncode
            case "stop":
                cluster.stop()
    except ClusterError as error:
        print(f"./dev cluster: {error}", file=sys.stderr)
        return 1
    print("\n".join(_status(cluster)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

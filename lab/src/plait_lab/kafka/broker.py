"""A real Kafka broker in a process of its own, which listens on this machine only.

It is one process, broker and controller at once (KRaft), with its files in a folder of its own. Its
jars are those that `./dev setup --integration` fetches, as are Spark's connector and the client.
A test cluster, whose hosts have addresses of their own, runs the same two commands on one of them.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from plait.errors import MissingRequirement
from plait.spark.environment import java

_INTEGRATION = Path(sys.prefix, "integration")
CONNECTOR = _INTEGRATION / "kafka-connector"
_BROKER = _INTEGRATION / "kafka-broker"
_HERE = "127.0.0.1"
_READY_SECONDS = 120.0
_TAIL = 2_000


def missing() -> str:
    """Why Kafka cannot be used here; nothing if it can.

    >>> isinstance(missing(), str)
    True
    """
    for what, there in (
        ("a Kafka broker is", _BROKER.is_dir()),
        ("Spark's Kafka connector is", CONNECTOR.is_dir()),
        ("the package confluent-kafka is", find_spec("confluent_kafka") is not None),
    ):
        if not there:
            return f"{what} missing: ./dev setup --integration fetches it"
    return java.missing()


def spark_settings() -> dict[str, str]:
    """What a session needs to read and write topics."""
    return {"spark.driver.extraClassPath": f"{CONNECTOR}/*"}


@contextmanager
def running_broker(folder: Path) -> Iterator[str]:
    """A broker that runs as long as this lasts, with its files in `folder`: its address."""
    if problem := missing():
        raise MissingRequirement(problem)
    folder.mkdir(parents=True, exist_ok=True)
    port, controller = _free_ports()
    settings = folder / "server.properties"
    settings.write_text(properties(folder / "log", _HERE, port, controller))
    prepare, serve = commands(settings)
    subprocess.run(prepare, check=True, capture_output=True)
    output = folder / "broker.log"
    with output.open("wb") as log:
        broker = subprocess.Popen(serve, stdout=log, stderr=log)
    try:
        address = f"{_HERE}:{port}"
        _wait_for(broker, address, output)
        yield address
    finally:
        broker.kill()
        broker.wait()


def properties(log: Path, host: str, port: int, controller: int) -> str:
    """The settings of a broker that keeps its messages in `log`."""
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{host}:{controller}",
        "listeners": f"PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{host}:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(log),
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def commands(settings: Path) -> tuple[list[str], list[str]]:
    """What prepares the files of a broker with these settings, once, and what runs it."""
    home = java.provide_java()
    run = [str(Path(home) / "bin" / "java"), "-Xmx512m", "-cp", f"{_BROKER}/*"]
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    prepare = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
    return [*run, *prepare], [*run, "kafka.Kafka", str(settings)]


def make_topics(
    address: str, topics: Mapping[str, int], settings: Mapping[str, str] | None = None
) -> None:
    """Make topics with so many partitions each."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    wanted = [NewTopic(name, n, 1, config=dict(settings or {})) for name, n in topics.items()]
    for made in admin.create_topics(wanted).values():
        made.result(60)


def _free_ports() -> tuple[int, int]:
    """Two ports that nobody listens on."""
    with socket.socket() as one, socket.socket() as two:
        for each in (one, two):
            each.bind((_HERE, 0))
        return one.getsockname()[1], two.getsockname()[1]


def _wait_for(broker: subprocess.Popen[bytes], address: str, output: Path) -> None:
    """Until it answers; a broker that ends before shows the end of its log."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline and broker.poll() is None:
        try:
            if admin.list_topics(timeout=2).brokers:
                return
        except KafkaException:
            continue
    raise MissingRequirement(f"the Kafka broker does not start: {output.read_text()[-_TAIL:]}")

"""Kafka for the tests: a broker of their own, messages in, messages out.

On a host whose network nobody else sees it is a script, which does what it reads from standard
input: `{"send": {TOPIC: [VALUE, ...]}}` makes topics of these messages, `{"receive": TOPIC}` prints
the values in one.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from plait_lab.kafka.broker import make_topics, missing, running_broker

needs_kafka = pytest.mark.skipif(bool(missing()), reason=missing() or "it is there")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker that ends with the tests of a module."""
    with running_broker(tmp_path_factory.mktemp("kafka")) as found:
        yield found


def send(address: str, topic: str, values: Iterable[bytes | None], partitions: int = 1) -> None:
    """Messages in this order, to the partitions in turn."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % partitions)
        producer.poll(0)
    assert producer.flush(60) == 0


def received(address: str, topic: str, seconds: float = 60.0) -> list[Any]:
    """The values in a topic of one partition, read as JSON."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": "tests"})
    try:
        place = TopicPartition(topic, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=seconds)
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Any] = []
        deadline = time.monotonic() + seconds
        while len(found) < end and time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                found.append(json.loads(message.value() or b"null"))
        assert len(found) == end
        return found
    finally:
        consumer.close()


def main(address: str) -> None:
    """Do what standard input says."""
    asked = json.load(sys.stdin)
    for topic, values in asked.get("send", {}).items():
        make_topics(address, {topic: 1})
        send(address, topic, (json.dumps(value).encode() for value in values))
    if "receive" in asked:
        json.dump(received(address, asked["receive"]), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])

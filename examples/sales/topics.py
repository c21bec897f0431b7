"""The topics of purchases in Kafka, and the one that sends to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Producer

from examples.sales.shop import Purchase
from tributary.contract.lake import Lake
from tributary.local.kafka import create_topic

_PARTITIONS = 2


def create_topics(lake: Lake, bootstrap: str) -> None:
    """Create the topics that the derived tables read, unless they exist."""
    for topic in sorted({kafka_topic(lake, name) for name, _ in lake.topics}):
        create_topic(bootstrap, topic, _PARTITIONS)


def kafka_topic(lake: Lake, name: str) -> str:
    """Return the name in Kafka of a section [topic.NAME]."""
    return dict(lake.topics)[name].topic or name


@dataclass(frozen=True)
class Sender:
    """Sends purchases to a topic, as JSON. The country is the message's key."""

    producer: Producer
    topic: str

    def send(self, purchase: Purchase) -> None:
        self.producer.produce(self.topic, key=purchase.country.encode(), value=purchase.as_json.encode())
        self.producer.poll(0)

    def send_all(self, purchases: Iterable[Purchase]) -> None:
        for purchase in purchases:
            self.send(purchase)


@contextmanager
def sending(bootstrap: str, topic: str) -> Iterator[Sender]:
    """Yield a sender. At the end of the context, Kafka has all that was sent."""
    producer = Producer({"bootstrap.servers": bootstrap})
    try:
        yield Sender(producer, topic)
    finally:
        unsent = producer.flush(30)
    if unsent:
        raise TimeoutError(f"Kafka did not take {unsent} purchases within 30 seconds")

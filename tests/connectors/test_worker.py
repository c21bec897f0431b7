"""The local worker listens only on this machine, and the workers on AWS use only options that MSK allows."""

from __future__ import annotations

import re

import pytest

from connectors.deployment import PlaintextKafka
from connectors.worker import local_worker, msk_sink_worker, msk_source_worker
from tests.connectors.deployments import LAKE

# MSK developer guide, "Supported worker configuration properties".
REFUSED_BY_MSK = (
    "access.control.",
    "admin.",
    "admin.listeners.https.",
    "client.",
    "connect.",
    "inter.worker.",
    "internal.",
    "listeners.https.",
    "metrics.",
    "metrics.context.",
    "rest.",
    "sasl.",
    "security.",
    "socket.",
    "ssl.",
    "topic.tracking.",
    "worker.",
    "bootstrap.servers",
    "cipher.suites",
    "config.storage.",
    "connections.",
    "group.id",
    "plugin.path",
    "status.storage.",
)


def test_a_local_worker_listens_on_the_loopback_address_only() -> None:
    properties = local_worker(LAKE.names, PlaintextKafka("127.0.0.1:19092"), 18083, "/plugins")
    assert properties["listeners"] == "http://127.0.0.1:18083"
    assert properties["rest.advertised.host.name"] == "127.0.0.1"
    assert properties["offset.storage.topic"] == LAKE.names.connect_offsets_topic


# The same page: MSK Connect accepts only the listed properties of clients.
TAKEN_BY_MSK = {
    f"{client}.{option}"
    for client in ("producer", "consumer")
    for option in ("reconnect.backoff.ms", "reconnect.backoff.max.ms")
}


@pytest.mark.parametrize(
    "properties", [msk_source_worker("__tributary.shop.crm.offsets", "eu-west-1"), msk_sink_worker()]
)
def test_msk_connect_accepts_every_property(properties: dict[str, str]) -> None:
    assert {"key.converter", "value.converter"} <= properties.keys()
    assert not [name for name in properties if name.startswith(REFUSED_BY_MSK)]
    of_clients = {name for name in properties if name.startswith(("producer.", "consumer."))}
    assert of_clients <= TAKEN_BY_MSK


def test_both_workers_use_the_same_converters_and_offset_interval() -> None:
    here = local_worker(LAKE.names, PlaintextKafka("127.0.0.1:19092"), 18083, "/plugins")
    there = msk_source_worker("__tributary.shop.crm.offsets", "eu-west-1")
    alike = {"key.converter", "value.converter", "offset.flush.interval.ms", "offset.storage.partitions"}
    assert {name for name in here.keys() & there.keys() if here[name] == there[name]} == alike


def test_each_worker_has_the_providers_of_what_it_refers_to() -> None:
    here = local_worker(LAKE.names, PlaintextKafka("127.0.0.1:19092"), 18083, "/plugins")
    there = msk_source_worker("offsets", "eu-west-1")
    for properties in (here, there):
        for provider in properties["config.providers"].split(","):
            assert re.fullmatch(r"[a-z]+", provider)
            assert f"config.providers.{provider}.class" in properties

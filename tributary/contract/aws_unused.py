"""Entries of `[aws]` that have no effect beside the others. A lake file with one of them is refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tributary.contract.aurora import Aurora
from tributary.contract.aws import Aws, Kafka, Network, Processing
from tributary.contract.engines.registry import SOURCES
from tributary.contract.entries import Problem
from tributary.contract.source import Source


@dataclass(frozen=True)
class Unused:
    """Entries of a section that change nothing.

    section  such as "network"
    entries  None: all of the section
    because  why, as the end of a sentence
    """

    section: str
    entries: tuple[str, ...] | None
    because: str


def unused_problems(aws: Aws, sources: Mapping[str, Source], said: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the entries that the lake file has, but that change nothing.

    sources  by name
    said     `[aws]` as the file has it. What comes from the profile is not there, and may be unused
    """
    for unused in unused_entries(aws, sources):
        of_file = said.get(unused.section, {})
        if unused.entries is None and unused.section in said:
            expected = f"no such section: {unused.because}"
            yield Problem(f"[aws.{unused.section}]", "a section without effect", "a section", expected)
        for entry in unused.entries or ():
            if entry in of_file:
                found, expected = json.dumps(of_file[entry]), f"no such entry: {unused.because}"
                yield Problem(f"[aws.{unused.section}].{entry}", "an entry without effect", found, expected)
    yield from _too_many(aws, said)


def unused_entries(aws: Aws, sources: Mapping[str, Source]) -> Iterator[Unused]:
    """Yield what has no effect for a lake with these sources, by name."""
    yield from _of_network(aws.network)
    connected = {name: source for name, source in sources.items() if source.item_stream is None}
    if connected:
        yield from _of_kafka(aws.kafka)
    else:
        because = "no source of the lake sends its changes through Kafka"
        yield Unused("kafka", None, because)
        yield Unused("connect", None, because)
        yield Unused("alarms", ("sink_lag",), because)
    own = [source for name, source in connected.items() if name not in aws.source]
    if connected and not own:
        because = "Tributary changes no password in an existing database"
        yield Unused("connect", ("rotation_days",), because)
    yield from _of_databases(aws, own)
    yield from _of_processing(aws.processing)


def _of_network(network: Network) -> Iterator[Unused]:
    if network.vpc is not None:
        entries = (
            "cidr",
            "availability_zones",
            "zones",
            "nat_gateways",
            "interface_endpoints",
            "flow_logs",
        )
        yield Unused("network", entries, "Tributary changes nothing in an existing VPC, [aws.network.vpc]")
    elif network.zones is not None:
        yield Unused("network", ("availability_zones",), "zones already says which and how many")


_OF_BROKERS = (
    "version",
    "broker",
    "brokers",
    "storage_gb",
    "storage_max_gb",
    "monitoring",
    "open_monitoring",
)


def _of_kafka(kafka: Kafka) -> Iterator[Unused]:
    if kafka.cluster is not None:
        because = "Tributary changes nothing in an existing cluster, [aws.kafka.cluster]"
        yield Unused("kafka", (*_OF_BROKERS, "min_insync"), because)
    elif kafka.is_express:
        entries = ("storage_gb", "storage_max_gb")
        yield Unused("kafka", entries, "Express brokers have no disks to choose")
    if kafka.kind == "serverless":
        own = () if kafka.cluster is not None else (*_OF_BROKERS, "min_insync")
        yield Unused("kafka", (*own, "replication"), "MSK Serverless decides on it itself")


def _of_databases(aws: Aws, own: Iterable[Source]) -> Iterator[Unused]:
    """Yield what an engine's databases would use, if the lake created one."""
    created = {type(source) for source in own}
    for engine, source in SOURCES.items():
        section = source.section_on_aws
        if section is None:
            continue
        settings = getattr(aws, section)
        if source not in created:
            because = f"the lake creates no database for a source of the engine {engine}"
            yield Unused(section, None, because)
            yield Unused("alarms", source.alarms_on_aws, because)
        elif isinstance(settings, Aurora) and not settings.is_serverless:
            because = f'instances of the class "{settings.instance}" have one size'
            yield Unused(section, ("capacity_min", "capacity_max"), because)


def _of_processing(processing: Processing) -> Iterator[Unused]:
    if processing.on == "emr-serverless":
        entries = ("groups", "primary", "core", "task", "spot", "tls")
        yield Unused("processing", entries, "EMR Serverless has workers instead of instances")
    elif processing.units_max == processing.core_count:
        because = "no instances come and go, because units_max is equal to core_count"
        yield Unused("processing", ("task", "spot"), because)


def _too_many(aws: Aws, said: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the lists and numbers of which only a part has an effect."""
    network, processing = aws.network, aws.processing
    gateways = said.get("network", {}).get("nat_gateways", 0)
    if network.vpc is None and gateways > aws.zone_count:
        what, expected = "more NAT gateways than zones", f"at most {aws.zone_count}"
        yield Problem("[aws.network].nat_gateways", what, str(gateways), expected)
    types = said.get("processing", {}).get("task", ())
    if processing.on == "emr" and processing.groups == "groups" and len(types) > 1:
        expected = f'["{types[0]}"], or groups = "fleets"'
        yield Problem(
            "[aws.processing].task", "an instance group has one type", json.dumps(list(types)), expected
        )

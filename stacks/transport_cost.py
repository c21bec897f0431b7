"""What it costs an hour to bring changes from the database to the Spark app, over Kinesis and over Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from stacks.cost import cents, charges, is_confirmed, price_of, sum_of
from stacks.synthesized import Templates

SHARE_OF_A_SHARD = 0.7
"""How full a shard of the computed streams is. The rest is for peaks, and for keys that come more often."""

_RECORDS_OF_A_SHARD, _BYTES_OF_A_SHARD = 1_000, 1_000_000
_GIGABYTE = 1 << 30
_SECONDS = 3_600
_KAFKA_STACKS = ("Streaming", "Connect")
_PRICES = (
    "kinesis-gigabyte-in",
    "kinesis-gigabyte-out",
    "kinesis-million-put-units",
    "dynamodb-million-change-units",
)


@dataclass(frozen=True)
class Load:
    """Changes a second, all day, and the bytes of a change: of its record, and of its item's larger image."""

    changes: int
    bytes: int


def on_demand_stream(load: Load) -> float:
    """Return the dollars an hour of a stream on demand that one app reads. Records go in by whole KB."""
    records = load.changes * _SECONDS
    into = records * ceil(load.bytes / 1024) * 1024 / _GIGABYTE
    out = records * load.bytes / _GIGABYTE
    data = into * price_of("kinesis-gigabyte-in") + out * price_of("kinesis-gigabyte-out")
    return price_of("kinesis-on-demand-stream") + data


def provisioned_stream(load: Load) -> float:
    """Return the dollars an hour of a stream with shards. AWS charges a record in steps of 25 KB."""
    units = load.changes * _SECONDS * ceil(load.bytes / 25_600)
    return shards(load) * price_of("kinesis-shard") + units / 1e6 * price_of("kinesis-million-put-units")


def shards(load: Load) -> int:
    used = max(load.changes / _RECORDS_OF_A_SHARD, load.changes * load.bytes / _BYTES_OF_A_SHARD)
    return max(1, ceil(used / SHARE_OF_A_SHARD))


def change_capture(load: Load) -> float:
    """Return what DynamoDB charges an hour for sending the changes to Kinesis, for each KB of an item."""
    units = load.changes * _SECONDS * ceil(load.bytes / 1024)
    return units / 1e6 * price_of("dynamodb-million-change-units")


def kafka(templates: Templates) -> tuple[float, float]:
    """Return the least and the most dollars an hour of a lake's brokers and connectors."""
    return sum_of([each for each in charges(templates) if each.stack in _KAFKA_STACKS])


def as_table(loads: Sequence[tuple[Load, str, Templates]]) -> str:
    """Return a Markdown table of loads, each with the profile whose Kafka carries it, and its templates."""
    rows = [
        f"| {load.changes:,} | {cents(on_demand_stream(load))} | {cents(provisioned_stream(load))} "
        f"({shards(load)}) | {cents(change_capture(load))} | {cents(*kafka(templates))} ({profile}) |"
        for load, profile, templates in loads
    ]
    unconfirmed = [what for what in _PRICES if not is_confirmed(what)]
    return "\n".join(
        [
            "| Changes/s | Kinesis on demand | Kinesis with shards | plus DynamoDB | Kafka and Connect |",
            "|--:|--:|--:|--:|--:|",
            *rows,
            "",
            f"Unconfirmed prices, beside those of [cost.md](cost.md): {', '.join(unconfirmed) or 'none'}.",
        ]
    )

"""The requests to Kinesis, with Boto3, and what its answers mean."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from spark_app.sources.kinesis.places import Shard
from tributary.contract.errors import TributaryError
from tributary.contract.item_stream import ItemStream

MOST_RECORDS = 10_000
"""The most records of an answer (Kinesis API, GetRecords). It has at most 10 MB."""

_THROTTLED = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "LimitExceededException",
        "KMSThrottlingException",
        "ThrottlingException",
    }
)
_EXPIRED = "ExpiredIteratorException"
_ENABLE_KEY = "Enable the KMS key that encrypts the stream, or cancel its deletion."
_FOR_A_PERSON = {
    "ResourceNotFoundException": "Create the stream, or correct its name in the lake file.",
    "AccessDeniedException": "Allow the app's role to read the stream.",
    "KMSAccessDeniedException": "Give the app's role kms:Decrypt on the key that encrypts the stream.",
    "KMSDisabledException": _ENABLE_KEY,
    "KMSInvalidStateException": _ENABLE_KEY,
    "KMSNotFoundException": _ENABLE_KEY,
}


class StreamUnreadable(TributaryError):
    """A stream that does not exist, or that the app may not read."""


class Throttled(OSError):
    """Kinesis has refused a request because there were too many, or too much was read."""


class IteratorExpired(OSError):
    """An iterator was not used for five minutes."""


@dataclass(frozen=True)
class Record:
    """A record in a shard. `arrived_ms` is when Kinesis got it, in milliseconds since 1970."""

    sequence: str
    arrived_ms: int
    partition_key: str
    data: bytes


@dataclass(frozen=True)
class Answer:
    """Some records of a shard, in order.

    iterator   where to read on; None at the end of a closed shard
    behind_ms  how far the last record is behind the newest one of the shard
    """

    records: tuple[Record, ...]
    iterator: str | None
    behind_ms: int


@dataclass(frozen=True)
class StreamFacts:
    """When the stream was created, and how long it keeps its records."""

    created: str
    retention_ms: int


@dataclass(frozen=True)
class Stream:
    """Reads one stream. Raises `StreamUnreadable` where a person has to help, and OSErrors that pass."""

    of: ItemStream

    def facts(self) -> StreamFacts:
        found = self._ask("describe_stream_summary", **self._named)["StreamDescriptionSummary"]
        created = found.get("StreamCreationTimestamp")
        text = None if created is None else datetime.fromtimestamp(created / 1000, UTC).isoformat()
        return StreamFacts(str(text), int(found.get("RetentionPeriodHours", 24)) * 3_600_000)

    def shards(self) -> tuple[Shard, ...]:
        """List the shards, each after its parents."""
        found: list[Shard] = []
        request: Mapping[str, Any] = self._named
        while True:
            answer = self._ask("list_shards", **request)
            for shard in answer["Shards"]:
                parents = (shard.get("ParentShardId"), shard.get("AdjacentParentShardId"))
                found.append(Shard(shard["ShardId"], tuple(filter(None, parents))))
            if not answer.get("NextToken"):
                return tuple(found)
            request = {"NextToken": answer["NextToken"]}

    def iterator(self, shard: str, sequence: str | None, *, includes_it: bool = False) -> str:
        """Return an iterator at the first record after the sequence number, or at the shard's first record.

        With `includes_it`, the record with that number comes once more, if the stream still has it."""
        kind = "AT_SEQUENCE_NUMBER" if includes_it else "AFTER_SEQUENCE_NUMBER"
        at = {"ShardIteratorType": "TRIM_HORIZON"}
        if sequence is not None:
            at = {"ShardIteratorType": kind, "StartingSequenceNumber": sequence}
        return str(self._ask("get_shard_iterator", ShardId=shard, **self._named, **at)["ShardIterator"])

    def read(self, iterator: str, most: int = MOST_RECORDS) -> Answer:
        by_arn = {"StreamARN": self.of.arn} if self.of.arn else {}
        found = self._ask("get_records", ShardIterator=iterator, Limit=most, **by_arn)
        records = tuple(
            Record(
                each["SequenceNumber"],
                each.get("ApproximateArrivalTimestamp") or 0,
                each["PartitionKey"],
                bytes(each["Data"]),
            )
            for each in found["Records"]
        )
        return Answer(records, found.get("NextShardIterator"), int(found.get("MillisBehindLatest") or 0))

    def _ask(self, operation: str, **request: Any) -> Any:
        try:
            return getattr(self._client, operation)(**request)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            raise self._error(code, error) from error
        except BotoCoreError as error:
            raise OSError(f"Kinesis stream {self.of.name}: {error}") from error

    def _error(self, code: str, error: ClientError) -> Exception:
        if code in _THROTTLED:
            return Throttled(str(error))
        if code == _EXPIRED:
            return IteratorExpired(str(error))
        if code in _FOR_A_PERSON:
            return StreamUnreadable(
                what="The stream of items cannot be read",
                where=f"Kinesis stream {self.of.stream}",
                found=str(error),
                remedy=_FOR_A_PERSON[code],
            )
        return OSError(f"Kinesis stream {self.of.name}: {error}")

    @property
    def _named(self) -> Mapping[str, str]:
        return {"StreamARN": self.of.arn} if self.of.arn else {"StreamName": self.of.name}

    @cached_property
    def _client(self) -> Any:
        session = botocore.session.get_session()
        # Boto3's own parser makes a datetime in the machine's time zone. It takes longer than all else.
        session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_milliseconds)
        return boto3.session.Session(botocore_session=session).client(
            "kinesis",
            endpoint_url=self.of.stream_endpoint,
            region_name=self.of.region_of_stream or region_here(),
            # The app waits and asks again by itself, because other shards can be read meanwhile.
            config=Config(retries={"total_max_attempts": 2, "mode": "standard"}, max_pool_connections=32),
        )


def region_here() -> str | None:
    """Return the region in which the app runs; None if only Boto3's own settings tell it."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")


def _milliseconds(seconds: str | float) -> int:
    """Return a time of Kinesis, in seconds since 1970, in milliseconds."""
    return round(float(seconds) * 1000)

"""Run moto's DynamoDB on a loopback port, and send each change of an item to a Kinesis stream.

This program runs alone, with the packages of `requirements.txt` in this folder, and imports nothing of
Tributary. It sends records in the form of "Kinesis Data Streams for DynamoDB". Tables live in memory. They
are saved when the program ends, and restored when it starts.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import logging
import random
import re
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

TARGET = "HTTP_X_AMZ_TARGET"
READING = ("Describe", "Get", "List", "Query", "Scan", "BatchGet", "TransactGet")
"""The beginnings of the operations that change no item."""

STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
RECORDS_AT_ONCE = 500
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_BETWEEN_STEPS = 0.25
"""A step costs at least four requests of moto. Without a pause, each change would cost them."""

READY = "ready"
"""The name of the file that appears once the saved tables are there."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Destination:
    """A stream, and the tables whose changes go to it. `tables` is a regular expression."""

    stream: str
    tables: str


class WithStreams:
    """Gives each new table a stream of its changes, and notes when a request may have changed an item."""

    def __init__(self, application: Any, changed: threading.Event) -> None:
        self.application, self.changed = application, changed

    def __call__(self, environ: Json, start_response: Any) -> Iterable[bytes]:
        operation = environ.get(TARGET, "").rpartition(".")[2]
        if operation == "CreateTable":
            request = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            body = json.dumps({**request, "StreamSpecification": STREAM}).encode()
            environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(body), str(len(body))
        answer: Iterable[bytes] = self.application(environ, start_response)
        if not operation.startswith(READING):
            self.changed.set()
        return answer


@dataclass
class Relay:
    """Reads the streams of all tables, and sends their records on.

    disorder  records come late and twice, as AWS says that they can
    """

    dynamodb: Any
    streams: Any
    kinesis: Any
    destinations: Sequence[Destination]
    disorder: bool = False
    clock: Callable[[], int] = lambda: time.time_ns() // 1_000
    chance: random.Random = field(default_factory=random.Random)
    _iterators: dict[tuple[str, str], str] = field(default_factory=dict)
    _held: list[tuple[str, Json]] = field(default_factory=list)
    _last_us: int = 0

    def step(self) -> int:
        """Send what has changed since the last step. Return the number of changes."""
        new = [each for table in table_names(self.dynamodb) for each in self._of_table(table)]
        count = len(new)
        if self.disorder:
            new, self._held = self._disordered(self._held + new)
        for stream in {stream for stream, _ in new}:
            self._put(stream, [record for of, record in new if of == stream])
        return count

    def skip(self) -> None:
        """Take the present items as sent."""
        for table in table_names(self.dynamodb):
            for _ in self._of_table(table):
                pass

    def _of_table(self, table: str) -> Iterator[tuple[str, Json]]:
        streams = [each.stream for each in self.destinations if re.fullmatch(each.tables, table)]
        arn = self.dynamodb.describe_table(TableName=table)["Table"].get("LatestStreamArn")
        if not streams or arn is None:
            return
        for shard in self.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            for change in self._of_shard(arn, shard["ShardId"]):
                for stream in streams:
                    yield stream, kinesis_record(change, table, self._now_us())

    def _of_shard(self, arn: str, shard: str) -> Iterator[Json]:
        at = self._iterators.get((arn, shard))
        if at is None:
            begin = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
            at = self.streams.get_shard_iterator(**begin)["ShardIterator"]
        while at is not None:
            answer = self.streams.get_records(ShardIterator=at)
            at = self._iterators[(arn, shard)] = answer.get("NextShardIterator")
            yield from answer["Records"]
            if not answer["Records"]:
                return

    def _now_us(self) -> int:
        self._last_us = max(self._last_us + 1, self.clock())
        return self._last_us

    def _disordered(
        self, records: list[tuple[str, Json]]
    ) -> tuple[list[tuple[str, Json]], list[tuple[str, Json]]]:
        """Return the records to send now, in another order and some of them twice, and those to hold back."""
        late = [each for each in records if self.chance.random() < 0.2]
        now = [each for each in records if each not in late or self.chance.random() < 0.3]
        self.chance.shuffle(now)
        return now, late

    def _put(self, stream: str, records: Sequence[Json]) -> None:
        waiting = list(records)
        while waiting:
            asked = waiting[:RECORDS_AT_ONCE]
            answer = self.kinesis.put_records(StreamName=stream, Records=asked)
            results = zip(asked, answer["Records"], strict=True)
            refused = [record for record, result in results if "ErrorCode" in result]
            waiting = [*refused, *waiting[RECORDS_AT_ONCE:]]
            if refused:
                time.sleep(0.2)


def kinesis_record(change: Json, table: str, time_us: int) -> Json:
    """Return the request for a record of Kinesis from a record of DynamoDB Streams."""
    of_item = change["dynamodb"]
    images = {name: of_item[name] for name in ("NewImage", "OldImage") if of_item.get(name)}
    # moto 5.2.5 encodes binary keys twice, but not the images.
    image = images.get("NewImage") or images.get("OldImage") or {}
    keys = {name: image.get(name, value) for name, value in of_item["Keys"].items()}
    data = {
        "awsRegion": change.get("awsRegion"),
        "eventID": str(uuid.uuid4()),
        "eventName": change["eventName"],
        "userIdentity": change.get("userIdentity"),
        "recordFormat": "application/json",
        "tableName": table,
        "dynamodb": {
            "ApproximateCreationDateTime": time_us,
            "Keys": keys,
            **images,
            "SizeBytes": of_item.get("SizeBytes", 0),
            "ApproximateCreationDateTimePrecision": "MICROSECOND",
        },
        "eventSource": "aws:dynamodb",
    }
    digest = hashlib.md5(json_of(keys, sort_keys=True).encode(), usedforsecurity=False)
    return {"Data": json_of(data).encode(), "PartitionKey": digest.hexdigest().upper()}


def json_of(value: Any, **options: Any) -> str:
    def base64_of(value: object) -> str:
        if isinstance(value, bytes | bytearray):
            return base64.b64encode(value).decode()
        raise TypeError(type(value).__name__)

    return json.dumps(value, separators=(",", ":"), default=base64_of, **options)


def table_names(dynamodb: Any) -> Iterator[str]:
    for page in dynamodb.get_paginator("list_tables").paginate():
        yield from page["TableNames"]


def save(dynamodb: Any, file: Path) -> None:
    """Write all tables with their items to a file that only its owner can read."""
    saved = []
    for name in table_names(dynamodb):
        pages = dynamodb.get_paginator("scan").paginate(TableName=name, ConsistentRead=True)
        items = [item for page in pages for item in page["Items"]]
        saved.append({"definition": _definition(dynamodb, name), "items": items})
    draft = file.with_suffix(".draft")
    draft.touch(mode=0o600)
    draft.write_text(json_of(saved))
    draft.replace(file)


def restore(dynamodb: Any, file: Path) -> None:
    """Create the tables of a file that `save` has written, if there is one."""
    if not file.exists():
        return
    for table in json.loads(file.read_text()):
        dynamodb.create_table(**table["definition"])
        for item in table["items"]:
            dynamodb.put_item(TableName=table["definition"]["TableName"], Item=with_bytes(item))


def _definition(dynamodb: Any, name: str) -> Json:
    found = dynamodb.describe_table(TableName=name)["Table"]
    definition = {key: found[key] for key in ("TableName", "KeySchema", "AttributeDefinitions")}
    for indexes in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        if found.get(indexes):
            kept = ("IndexName", "KeySchema", "Projection")
            definition[indexes] = [{key: index[key] for key in kept} for index in found[indexes]]
    return {**definition, "BillingMode": "PAY_PER_REQUEST"}


def with_bytes(attributes: Mapping[str, Any]) -> Json:
    """Return an item from JSON, which has bytes in base64, as Boto3 takes it."""
    return {name: _typed(value) for name, value in attributes.items()}


def _typed(attribute: Mapping[str, Any]) -> Json:
    ((kind, value),) = attribute.items()
    match kind:
        case "B":
            return {kind: base64.b64decode(value)}
        case "BS":
            return {kind: [base64.b64decode(each) for each in value]}
        case "L":
            return {kind: [_typed(each) for each in value]}
        case "M":
            return {kind: with_bytes(value)}
        case _:
            return {kind: value}


def main() -> None:
    arguments = _arguments()
    # Otherwise each request writes a line.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    changed, stopped = threading.Event(), threading.Event()
    application = WithStreams(DomainDispatcherApplication(create_backend_app), changed)
    server = make_server("127.0.0.1", arguments.port, application, threaded=True)
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    threading.Thread(target=server.serve_forever, daemon=True).start()

    relays = {region: _relay(arguments, region) for region in sorted({d[0] for d in arguments.destinations})}
    for region, relay in relays.items():
        restore(relay.dynamodb, _saved(arguments, region))
        relay.skip()
    (arguments.folder / READY).touch()
    while not stopped.is_set():
        changed.wait(SECONDS_BETWEEN_LOOKS)
        # Clear it first: somebody may change an item during the step.
        changed.clear()
        for relay in relays.values():
            relay.step()
        stopped.wait(SECONDS_BETWEEN_STEPS)
    for region, relay in relays.items():
        relay.disorder = False
        relay.step()
        save(relay.dynamodb, _saved(arguments, region))


def _relay(arguments: argparse.Namespace, region: str) -> Relay:
    def client(service: str, endpoint: str) -> Any:
        session: Any = boto3.session.Session("local", "local", region_name=region)
        return session.client(service, endpoint_url=endpoint)

    here = f"http://127.0.0.1:{arguments.port}"
    return Relay(
        client("dynamodb", here),
        client("dynamodbstreams", here),
        client("kinesis", arguments.kinesis),
        [Destination(stream, tables) for of, stream, tables in arguments.destinations if of == region],
        arguments.disorder,
    )


def _saved(arguments: argparse.Namespace, region: str) -> Path:
    folder: Path = arguments.folder
    return folder / f"tables-{region}.json"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--kinesis", required=True, metavar="URL")
    parser.add_argument("--folder", type=Path, required=True, help="for the saved tables")
    parser.add_argument("--disorder", action="store_true", help="send records late and twice, too")
    parser.add_argument(
        "--destination",
        dest="destinations",
        nargs=3,
        action="append",
        required=True,
        metavar=("REGION", "STREAM", "REGEX"),
        help="a stream, and a regular expression of the tables whose changes go to it",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()

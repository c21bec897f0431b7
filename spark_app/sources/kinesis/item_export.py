"""Read a table's items from its export to S3, "DynamoDB table export output format", in DynamoDB's JSON."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from spark_app.sources.kinesis.stream import StreamFacts, StreamUnreadable
from tributary.contract.remedies import EditLakeFile

ITEMS_AT_ONCE = 1_000

Item = Mapping[str, Any]


@dataclass(frozen=True)
class ExportedPage:
    """Some items of an export. `next` says where the next ones begin; None at the end."""

    items: tuple[Item, ...]
    next: str | None


@dataclass
class ItemExport:
    """The export of one table. Raises `StreamUnreadable` where a person has to help, and OSErrors that pass.

    address  the folder with the manifests: s3://bucket/prefix/AWSDynamoDB/ID
    facts    when the stream was created, and how long it keeps its records
    """

    table: str
    address: str
    facts: Callable[[], StreamFacts]
    now: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    _open: tuple[str, Iterator[Item]] | None = field(default=None, init=False, repr=False)

    @property
    def id(self) -> str:
        return self.address.rstrip("/").rpartition("/")[2]

    @cached_property
    def time_ms(self) -> int:
        """The point in time of the items, in milliseconds since 1970."""
        return _milliseconds(self._summary["exportTime"])

    def page(self, begin: str | None) -> ExportedPage:
        """Return the next items. `begin` is where a page said that the next one begins.

        A place in another export, or in a scan, is not one in this export. So reading starts over."""
        file, line = self._place(begin)
        if (file, line) == (0, 0):
            self._check_that_the_stream_continues_it()
        while file < len(self._files):
            found = self._next(file, line)
            line += len(found)
            if len(found) == ITEMS_AT_ONCE:
                return ExportedPage(found, self._token(file, line))
            self._check_count(file, line)
            file, line = file + 1, 0
            self._open = None
            if found:
                return ExportedPage(found, self._token(file, 0) if file < len(self._files) else None)
        return ExportedPage((), None)

    def _place(self, begin: str | None) -> tuple[int, int]:
        found = None if begin is None else json.loads(begin)
        if not isinstance(found, list) or found[0] != self.id:
            return 0, 0
        return int(found[1]), int(found[2])

    def _token(self, file: int, line: int) -> str:
        return json.dumps([self.id, file, line])

    def _next(self, file: int, line: int) -> tuple[Item, ...]:
        try:
            return tuple(islice(self._items(file, line), ITEMS_AT_ONCE))
        except (BotoCoreError, EOFError, zlib.error, OSError) as error:
            self._open = None
            raise OSError(f"S3, while data/{self._files[file][0]} was read: {error}") from error

    def _items(self, file: int, line: int) -> Iterator[Item]:
        """Return the items of a file from a line on. A file that is read in order is decompressed once."""
        token = self._token(file, line)
        if self._open is None or self._open[0] != token:
            self._open = (token, self._items_of(self._files[file][0], line))
        items = self._open[1]
        self._open = (self._token(file, line + ITEMS_AT_ONCE), items)
        return items

    def _items_of(self, name: str, line: int) -> Iterator[Item]:
        with gzip.open(self._get(f"data/{name}")) as lines:
            for each in islice(lines, line, None):
                try:
                    yield json.loads(each)["Item"]
                except (ValueError, KeyError) as error:
                    raise self._unreadable(f"{error} in data/{name}", 'lines with {"Item": …}') from error

    def _check_count(self, file: int, lines: int) -> None:
        name, items = self._files[file]
        if lines != items:
            raise self._unreadable(f"{lines:,} items in data/{name}", f"{items:,}, as the manifest says")

    def _check_that_the_stream_continues_it(self) -> None:
        facts, at = self.facts(), self.time_ms
        oldest = max(self.now() - facts.retention_ms, _milliseconds(facts.created))
        if at < oldest:
            expected = f"a time after {_text(oldest)}, when the stream's oldest changes are from"
            raise self._unreadable(f"items of {_text(at)}", expected)

    @cached_property
    def _summary(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(self._get("manifest-summary.json").read())
        kind = found.get("exportType") or "FULL_EXPORT"
        if (kind, found["outputFormat"]) != ("FULL_EXPORT", "DYNAMODB_JSON"):
            raise self._unreadable(f"{kind} in {found['outputFormat']}", "FULL_EXPORT in DYNAMODB_JSON")
        if (table := found["tableArn"].rpartition("/")[2]) != self.table:
            raise self._unreadable(f"an export of the table {table}", f"one of {self.table}")
        return found

    @cached_property
    def _files(self) -> tuple[tuple[str, int], ...]:
        """The names of the data files, with the number of items of each."""
        lines = self._get("manifest-files.json").read().splitlines()
        files = [json.loads(line) for line in lines if line.strip()]
        return tuple((each["dataFileS3Key"].rpartition("/")[2], int(each["itemCount"])) for each in files)

    def _get(self, name: str) -> Any:
        bucket, _, folder = self.address.removeprefix("s3://").rstrip("/").partition("/")
        try:
            return self._client.get_object(Bucket=bucket, Key=f"{folder}/{name}")["Body"]
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in ("NoSuchKey", "NoSuchBucket", "AccessDenied"):
                raise self._unreadable(str(error), f"the file {name}, and the right to read it") from error
            raise OSError(f"S3: {error}") from error
        except BotoCoreError as error:
            raise OSError(f"S3: {error}") from error

    @cached_property
    def _client(self) -> Any:
        return boto3.client("s3", config=Config(retries={"total_max_attempts": 3, "mode": "standard"}))

    def _unreadable(self, found: str, expected: str) -> StreamUnreadable:
        return StreamUnreadable(
            what="The export of a table's items cannot be loaded",
            where=self.address,
            found=found,
            expected=expected,
            remedy=EditLakeFile(
                f"set exports.{self.table} to another export, or remove it: then all items are scanned"
            ),
        )


def _milliseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def _text(time_ms: int) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(time_ms // 1000))}Z"

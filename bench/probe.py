"""The probe: commit a row from time to time, and observe from outside when a reader of the lake gets it.

The probe is its own process, `python -m bench.probe`. It reads its `Orders` as one line of JSON from
standard input and prints each `Sighting` as a line. When its input closes, it waits for the rows on their way
and exits.
"""

from __future__ import annotations

import json
import random
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import boto3
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from botocore.config import Config
from hudi import HudiReadOptions, HudiTableBuilder
from psycopg import sql

from bench.workload import SCHEMA, until_closed
from tributary.api.lake_files import REGION, LocalFiles

PATIENCE_SECONDS = 120.0
"""How long the probe waits for a row. A row that takes longer makes the whole result invalid."""

_COMPLETED = re.compile(r"\d{17}\.(commit|deltacommit|replacecommit)")


@dataclass(frozen=True)
class Orders:
    """The instructions for the probe.

    paths                 each table's path in the lake, starting with the bucket
    seconds_between_rows  the mean. At fixed intervals, rows could fall in step with commits and all wait
                          equally long.
    """

    conninfo: str
    paths: dict[str, str]
    endpoint: str
    access_key: str
    secret_key: str
    seconds_between_rows: float
    seconds_between_polls: float
    seed: int


@dataclass(frozen=True)
class Sighting:
    """The moments of one row, in seconds since 1970.

    committing  just before the COMMIT was sent
    committed   when the database had answered
    listed      when a listing of the timeline showed a new commit, and the read of the table began
    read        when that read returned the row
    """

    table: str
    key: int
    committing: float
    committed: float
    listed: float
    read: float


@dataclass(frozen=True)
class _Row:
    key: int
    committing: float
    committed: float


class Timeline:
    """The completed commits of one table, found by listing its folder."""

    def __init__(self, client: Any, path: str) -> None:
        self._client = client
        self._bucket, _, key = path.partition("/")
        self._folder = f"{key}/.hoodie/"
        self._latest = ""

    def has_new_commit(self, since: float) -> bool:
        """Tell whether a commit that began after `since` is complete and was in no earlier listing.

        A commit that began before a row was committed cannot contain the row: the app reads a commit's events
        before the commit begins.
        """
        # A commit's file sorts after the files of all commits that began earlier.
        after = max(self._latest, instant_at(since))
        found = self._client.list_objects_v2(
            Bucket=self._bucket,
            Prefix=f"{self._folder}2",
            Delimiter="/",
            StartAfter=self._folder + after,
        )
        latest = latest_commit(entry["Key"].rpartition("/")[2] for entry in found.get("Contents", ()))
        if latest is None:
            return False
        self._latest = latest
        return True


def instant_at(moment: float) -> str:
    """Return Hudi's instant for a commit that begins at the moment (seconds since 1970)."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y%m%d%H%M%S%f")[:17]


def latest_commit(names: Iterable[str]) -> str | None:
    """Return the last completed commit among the names of a timeline's files."""
    return max((name for name in names if _COMPLETED.fullmatch(name)), default=None)


class Lake:
    """The lake's tables, read with hudi-rs."""

    def __init__(self, files: LocalFiles, paths: dict[str, str]) -> None:
        self._files = files
        self._paths = paths

    def probe_keys(self, table: str) -> frozenset[int]:
        """Return the keys of the probe's rows. Only the probe uses keys below 0."""
        reader = (
            HudiTableBuilder.from_base_uri(f"s3://{self._paths[table]}")
            .with_storage_options(self._files.hudi_options)
            .build()
        )
        batches = reader.read(HudiReadOptions().with_projection(["id"]))
        found = pa.Table.from_batches(batches) if batches else reader.get_schema().empty_table()
        ids = found["id"]
        return frozenset(ids.filter(pc.less(ids, 0)).to_pylist())


class Probe:
    """A probe in which one thread commits rows and another looks for them."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        files = LocalFiles(orders.endpoint, orders.access_key, orders.secret_key)
        client = boto3.session.Session().client(
            "s3",
            endpoint_url=orders.endpoint,
            aws_access_key_id=orders.access_key,
            aws_secret_access_key=orders.secret_key,
            region_name=REGION,
            config=Config(s3={"addressing_style": "path"}, connect_timeout=2, read_timeout=30),
        )
        self._lake = Lake(files, orders.paths)
        self._timelines = {table: Timeline(client, path) for table, path in orders.paths.items()}
        self._waiting: dict[str, list[_Row]] = {table: [] for table in orders.paths}
        self._lock = threading.Lock()

    def run(self, stop: threading.Event) -> Iterator[Sighting]:
        """Yield each row when it is seen, until `stop` is set and none is missing.

        Raises TimeoutError if a row does not appear.
        """
        writer = threading.Thread(target=self._commit_rows, args=(stop,), name="rows")
        writer.start()
        try:
            while writer.is_alive() or self._any_waiting():
                yield from self._look()
                time.sleep(self._orders.seconds_between_polls)
        finally:
            stop.set()
            writer.join()

    def _commit_rows(self, stop: threading.Event) -> None:
        tables, chance = list(self._orders.paths), random.Random(self._orders.seed)
        with psycopg.connect(self._orders.conninfo, autocommit=False) as connection:
            due, key = time.monotonic(), -1
            while not stop.wait(max(0.0, due - time.monotonic())):
                table = chance.choice(tables)
                row = _commit_row(connection, table, key)
                with self._lock:
                    self._waiting[table].append(row)
                due += chance.expovariate(1 / self._orders.seconds_between_rows)
                key -= 1

    def _any_waiting(self) -> bool:
        with self._lock:
            return any(self._waiting.values())

    def _look(self) -> Iterator[Sighting]:
        for table, timeline in self._timelines.items():
            with self._lock:
                waiting = list(self._waiting[table])
            if not waiting or not timeline.has_new_commit(waiting[0].committing):
                continue
            listed = time.time()
            keys = self._lake.probe_keys(table)
            read = time.time()
            seen = [row for row in waiting if row.key in keys]
            with self._lock:
                for row in seen:
                    self._waiting[table].remove(row)
            for row in seen:
                yield Sighting(table, row.key, row.committing, row.committed, listed, read)
            if time.time() - waiting[0].committed > PATIENCE_SECONDS:
                raise TimeoutError(f"{table}: the row {waiting[0].key} was not readable in time")


def _commit_row(connection: psycopg.Connection, table: str, key: int) -> _Row:
    connection.execute(
        sql.SQL("INSERT INTO {} VALUES (%s, 0, 'probe', 0, 'probe', now())").format(
            sql.Identifier(SCHEMA, table)
        ),
        [key],
    )
    committing = time.time()
    connection.commit()
    return _Row(key, committing, time.time())


def main() -> None:
    """Read the orders from standard input and run the probe."""
    orders = Orders(**json.loads(sys.stdin.readline()))
    stop = threading.Event()
    until_closed(stop)
    for sighting in Probe(orders).run(stop):
        print(json.dumps(asdict(sighting)), flush=True)


if __name__ == "__main__":
    main()

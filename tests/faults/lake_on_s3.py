"""A lake table on an S3 server that may fail, and the source table that it must equal."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.positions.postgres import PostgresLog
from spark_app.sources.event import OffsetRange
from spark_app.sources.passing_failures import PASSING_FAILURES
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tests.faults.injected import Harm
from tests.faults.s3_faults import FaultyS3, Moment, Point, faulty_s3
from tests.spark_app.debezium import TOPIC, SourceTable, event_row
from tests.spark_app.memory_source import MemorySource
from tributary.api.lake_files import LakeFiles, LocalFiles
from tributary.api.rows import read_table
from tributary.api.tables import LakeTable as TableOfLake
from tributary.contract.lake import TablePolicy, parse_lake
from tributary.contract.table_name import TableName
from tributary.local import s3
from tributary.local.s3 import s3a_options
from tributary.local.server_files import read_server_files
from tributary.local.servers import Servers
from tributary.local.state import StateFolder, choose_settings

BUCKET = "silver"
_LAKE = parse_lake(
    """
    [lake]
    name = "faults"

    [source.shop]
    engine = "postgres"
    database = "shop"
    tables = ["public.*"]
    """
)


@dataclass(frozen=True)
class Storage:
    """The S3 server: its addresses for Spark and for other clients, and the folder of its bucket."""

    faults: FaultyS3
    files: LakeFiles
    bucket: Path


@contextmanager
def storage(spark: SparkSession, folder: Path) -> Iterator[Storage]:
    """Start an S3 server behind a proxy. The session reaches it at `s3a://silver`, without retries."""
    state = StateFolder(folder / "state")
    state.create()
    settings = choose_settings(state, _LAKE.name, {}, frozenset())
    server = Servers(_LAKE, state, settings, read_server_files()).s3
    # Connect is not running here, so its port is free.
    port = settings.ports.connect
    files = LocalFiles(f"http://127.0.0.1:{port}", server.access_key, server.secret_key)
    options = {
        **s3a_options(files.endpoint),
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "access.key": server.access_key,
        "secret.key": server.secret_key,
        "attempts.maximum": "1",
        "retry.limit": "1",
        "retry.interval": "10ms",
        "retry.throttle.limit": "1",
        "retry.throttle.interval": "10ms",
    }
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
    names = [f"fs.s3a.bucket.{BUCKET}.{name}" for name in options]
    try:
        server.start(threading.Event())
        s3.create_buckets(server, [BUCKET])
        for name, value in zip(names, options.values(), strict=True):
            configuration.set(name, value)
        with faulty_s3(port, server.port) as faults:
            yield Storage(faults, files, server.folder / "buckets" / BUCKET)
    finally:
        for name in names:
            configuration.unset(name)
        server.stop(state.run)


@dataclass
class LakeTable:
    """A table in the bucket's folder `name`, and the source of its events."""

    spark: SparkSession
    storage: Storage
    name: str
    policy: TablePolicy = field(default_factory=lambda: TablePolicy(buckets=2))
    source: SourceTable = field(default_factory=SourceTable)
    _ingest: TableIngest | None = None

    @property
    def hudi(self) -> HudiTable:
        return HudiTable(self.spark, f"s3a://{BUCKET}/{self.name}/table", "things", self.policy)

    @property
    def ingest(self) -> TableIngest:
        """Return a process's knowledge of the table."""
        if self._ingest is None:
            self._ingest = TableIngest(
                "source.public.things",
                TOPIC,
                self._events(),
                self.hudi,
                f"{self._path}/quarantine",
                TopicForm(PostgresLog()),
            )
        self._ingest.parts.reader.source = self._events()
        return self._ingest

    def transact(self, *changes: Callable[[SourceTable], None]) -> None:
        """Commit one transaction in the source database."""
        self.source.begin()
        for change in changes:
            change(self.source)
        self.source.commit()

    def catch_up(self) -> None:
        """Apply everything from the source as one commit."""
        position = self.ingest.ledger.positions.get(0, 0)
        self.ingest.pending(self.ingest.source.extents(frozenset({TOPIC}))[TOPIC], len(self.source.events))
        self.ingest.apply((OffsetRange(0, position, len(self.source.events)),))

    def end_process(self) -> None:
        self._ingest = None

    def end_within(self, run: Callable[[LakeTable], None], point: Point, moment: Moment) -> None:
        """End the process that runs `run` right before, or right after, S3 gets the request `point`."""
        faults = self.storage.faults
        faults.stop_at(point, moment)
        try:
            # A process that cannot reach S3 anymore gets errors, which it would retry.
            with suppress(*PASSING_FAILURES):
                run(self)
            assert faults.is_reached.is_set(), f"{point.name} was never reached"
        finally:
            faults.mend()
            self.end_process()

    def copied_as(self, name: str, source: SourceTable) -> LakeTable:
        """Return a copy of the files, with another source that continues from there."""
        files = self.storage.bucket / self.name
        if files.exists():
            shutil.copytree(files, self.storage.bucket / name)
        return LakeTable(self.spark, self.storage, name, self.policy, source)

    def harm(self) -> Harm:
        """Return the differences between the table and its source."""
        stored, wanted = self._rows()
        known = {row["id"] for row in stored} & {row["id"] for row in wanted}
        return Harm(sum(row not in stored for row in wanted), len(stored) - len(known))

    def check(self) -> None:
        """Check that the table equals its source, in Spark and without it, and has read everything."""
        stored, wanted = self._rows()
        assert stored == wanted
        present = [row for row in self.rows_without_spark() if row["_op"] != "d"]
        without_spark = [{name: row[name] for name in wanted[0]} for row in present] if wanted else present
        assert sorted(without_spark, key=itemgetter("id")) == wanted
        assert self.ingest.ledger.positions == {0: len(self.source.events)}

    def temporary_files(self) -> list[str]:
        """Return the names of commit markers and drafts."""
        folder = self.storage.bucket / self.name / "table" / ".hoodie" / ".temp"
        return [path.name for path in folder.rglob("*") if path.is_file()]

    def rows_without_spark(self, as_of: str | None = None) -> list[dict[str, Any]]:
        table = TableOfLake(TableName("source", "public", "things"), f"{BUCKET}/{self.name}/table")
        rows: list[dict[str, Any]] = read_table(self.storage.files, table, as_of).to_pylist()
        return rows

    def _rows(self) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        """Return the rows of the table and of the source, sorted by key."""
        read = self.hudi.read().where("_op <> 'd'")
        names = [name for name in read.columns if not name.startswith("_")]
        stored = [row.asDict() for row in read.select(*names).orderBy("id").collect()]
        return stored, [
            {name: row.get(name) for name in names} for _, row in sorted(self.source.rows.items())
        ]

    def quarantined(self) -> int:
        if not (self.storage.bucket / self.name / "quarantine").exists():
            return 0
        rows = self.spark.read.parquet(f"{self._path}/quarantine/*")
        return rows.select("partition", "offset").distinct().count()

    @property
    def _path(self) -> str:
        return f"s3a://{BUCKET}/{self.name}"

    def _events(self) -> MemorySource:
        rows = [event_row(event, offset) for offset, event in enumerate(self.source.events)]
        return MemorySource(self.spark, rows)

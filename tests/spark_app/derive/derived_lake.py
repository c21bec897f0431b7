"""A lake on disk whose tables a test writes, and the derived tables over them."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from spark_app.derive.derived_table import DerivedTable
from spark_app.derive.from_events import FromEvents
from spark_app.derive.from_tables import FromTables
from spark_app.derive.input_tables import InputTables
from spark_app.derive.outputs import Outputs
from spark_app.derive.topics import rows_of, with_watermark
from spark_app.hudi.hudi_table import HudiTable
from spark_app.ledger.commits import commit_metadata
from spark_app.ledger.ledger import Ledger
from spark_app.reports import Committed, ProgressWriter
from tributary.contract.derivations import (
    Derivations,
    StreamDerivation,
    TableDerivation,
    read_derivations,
)
from tributary.contract.derived import derived_table
from tributary.contract.lake import Lake, parse_lake
from tributary.contract.table_name import TableName

HEAD = """
[lake]
name = "shop"
[source.shop]
engine = "postgres"
database = "shop"
tables = ["public.*"]
"""


@dataclass
class DerivedLake:
    """The lake of a lake file's text. `types` are the columns of its tables, as Spark writes them."""

    spark: SparkSession
    folder: Path
    text: str
    types: Mapping[str, str] = field(default_factory=dict)
    out: io.StringIO = field(default_factory=io.StringIO)
    _number: int = 0

    @property
    def lake(self) -> Lake:
        return parse_lake(HEAD + self.text)

    @property
    def silver(self) -> str:
        return str(self.folder / "silver")

    @property
    def derivations(self) -> Derivations:
        return read_derivations(self.lake, self.folder)

    def table(self, name: str) -> HudiTable:
        found = TableName("shop", "public", name)
        path = self.lake.names.table_path(found)
        return HudiTable(self.spark, f"{self.silver}/{path}", path.replace("/", "_"), self.lake.policy(found))

    def write(
        self, name: str, upserts: Iterable[tuple[Any, ...]] = (), deletes: Iterable[tuple[Any, ...]] = ()
    ) -> None:
        """Commit rows to a source's table. The first column is the key."""
        self._number += 1
        rows = [(json.dumps({"id": row[0]}), "u", self._number, *row) for row in upserts]
        rows += [(json.dumps({"id": row[0]}), "d", self._number, *row) for row in deletes]
        schema = f"_key string not null, _op string not null, _seq bigint not null, {self.types[name]}"
        gone = sum(row[1] == "d" for row in rows)
        ledger = Ledger(topic=f"shop.shop.public.{name}", events=len(rows), deletes=gone)
        self.table(name).write(self.spark.createDataFrame(rows, schema), commit_metadata(ledger))

    def replace(self, name: str, upserts: Iterable[tuple[Any, ...]]) -> None:
        """Replace all rows of a source's table, as after a change of a column's type."""
        self._number += 1
        rows = [(json.dumps({"id": row[0]}), "u", self._number, *row) for row in upserts]
        schema = f"_key string not null, _op string not null, _seq bigint not null, {self.types[name]}"
        ledger = Ledger(topic=f"shop.shop.public.{name}", events=len(rows), deletes=0)
        self.table(name).replace_all(self.spark.createDataFrame(rows, schema), commit_metadata(ledger))

    def from_tables(self, name: str) -> FromTables:
        """Open a derived table, as a run does when it starts."""
        (derivation,) = (one for one in self.derivations.ordered if one.name == name)
        assert isinstance(derivation, TableDerivation)
        inputs = InputTables(self.spark, self.lake, self.silver)
        table = DerivedTable(
            derived_table(name), inputs.hudi(derived_table(name)), f"{self.folder}/quarantine/{name}"
        )
        outputs = Outputs(name, derivation.entry, None, ProgressWriter(self.out))
        opened = FromTables(self.spark, derivation, table, inputs, outputs)
        opened.recover()
        return opened

    def send(self, topic: str, events: Iterable[Mapping[str, Any] | str]) -> None:
        """Add a batch of events to a topic. A text is not JSON."""
        folder = self.folder / "topics" / topic
        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.iterdir()))
        values = [event if isinstance(event, str) else json.dumps(event) for event in events]
        batch = pa.table(
            {
                "value": pa.array([value.encode() for value in values], pa.binary()),
                "partition": pa.array([0] * len(values), pa.int32()),
                "offset": pa.array([1_000 * number + place for place in range(len(values))], pa.int64()),
                "timestamp": pa.array([datetime.now(UTC)] * len(values), pa.timestamp("us", "UTC")),
            }
        )
        pq.write_table(batch, folder / f"{number:06}.parquet")
        # Spark reads files in the order of their times.
        os.utime(folder / f"{number:06}.parquet", (1_700_000_000 + number, 1_700_000_000 + number))

    def from_events(self, name: str) -> FromEvents:
        """Open a derived table of events, as a run does when it starts. Each file is a batch."""
        (derivation,) = (one for one in self.derivations.ordered if one.name == name)
        assert isinstance(derivation, StreamDerivation)
        inputs = InputTables(self.spark, self.lake, self.silver)
        table = DerivedTable(
            derived_table(name), inputs.hudi(derived_table(name)), f"{self.folder}/quarantine/{name}"
        )
        progress = ProgressWriter(self.out)
        opened = FromEvents(
            spark=self.spark,
            derivation=derivation,
            table=table,
            inputs=inputs,
            outputs=Outputs(name, derivation.entry, None, progress),
            topics={topic: topic for topic in derivation.topics},
            stream=self._stream,
            ends=lambda topics: {topic: {0: self._sent(topic)} for topic in topics},
            checkpoints=f"{self.folder}/checkpoints",
            progress=progress,
        )
        opened.recover()
        return opened

    def _sent(self, topic: str) -> int:
        return len(list((self.folder / "topics" / topic).iterdir()))

    def _stream(self, name: str) -> DataFrame:
        topic = dict(self.lake.topics)[name]
        records = (
            self.spark.readStream.schema("value binary, partition int, offset bigint, timestamp timestamp")
            .option("maxFilesPerTrigger", "1")
            .parquet(str(self.folder / "topics" / name))
        )
        return with_watermark(rows_of(records, name, topic), topic)

    def reports(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]

    def advance(self, name: str) -> Committed | None:
        return self.from_tables(name).advance()

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """Return the rows of a derived table without the app's columns, in order."""
        hudi = InputTables(self.spark, self.lake, self.silver).hudi(derived_table(name))
        found = hudi.read()
        columns = [column for column in found.columns if not column.startswith("_")]
        return sorted((tuple(row) for row in found.select(*columns).collect()), key=repr)

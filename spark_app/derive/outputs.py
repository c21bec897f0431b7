"""Where a derived table's rows go besides the table: a topic of Kafka, a folder of files, and the console.

All are written before the table's commit. If the run ends in between, the next one repeats the rows: a topic
gets them twice, with the same keys, and a folder gets the same files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.derive.messages import avro_messages, json_messages
from spark_app.derive.result_rows import columns_of
from spark_app.reports import DerivedRow, ProgressWriter
from spark_app.schema_registry.registry import SchemaStore
from tributary.contract.derived import Derived

MOST_PRINTED = 1_000
"""How many rows of a commit are printed."""


@dataclass(frozen=True)
class Kafka:
    """A Kafka cluster. `options` are properties of its clients, with Kafka's names."""

    bootstrap_servers: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def spark_options(self) -> Mapping[str, str]:
        """The options of Spark's source and sink."""
        own = {f"kafka.{name}": value for name, value in self.options.items()}
        return {"kafka.bootstrap.servers": self.bootstrap_servers, **own}


@dataclass(frozen=True)
class Outputs:
    """The outputs of one derived table.

    kafka   None if the run has no Kafka
    schemas the registry for messages in Avro; None if the lake has none
    """

    table: str
    entry: Derived
    kafka: Kafka | None
    progress: ProgressWriter
    schemas: SchemaStore | None = None

    @property
    def has_files(self) -> bool:
        return self.entry.folder is not None

    def write_changes(self, rows: DataFrame) -> None:
        """Send changed and deleted rows to the topic, and print them."""
        if self.entry.topic is not None and self.kafka is not None:
            self._messages(rows, self.entry.topic).write.format("kafka").options(
                **self.kafka.spark_options, topic=self.entry.topic
            ).save()
        if self.entry.console:
            values = json_messages(rows).limit(MOST_PRINTED)
            for row in values.select(F.col("key").cast("string"), F.col("value").cast("string")).collect():
                self.progress.write(DerivedRow(self.table, row["key"], row["value"]))

    def _messages(self, rows: DataFrame, topic: str) -> DataFrame:
        if not self.entry.writes_avro:
            return json_messages(rows)
        assert self.schemas is not None, "the lake file is checked: Avro needs a registry"
        return avro_messages(rows, self.table.rpartition(".")[2], topic, self.schemas)

    def write_all(self, rows: DataFrame) -> None:
        """Replace the folder's files by files with these rows."""
        self._write_files(rows, "")

    def write_batch(self, rows: DataFrame, generation: int, batch: int) -> None:
        """Write the rows of a batch of events to a folder of their own, in place of an earlier attempt."""
        self._write_files(rows, f"/generation={generation}/batch={batch}")

    def _write_files(self, rows: DataFrame, below: str) -> None:
        if self.entry.folder is None:
            return
        values = rows.select(*columns_of(rows).names)
        folder = (
            self.entry.folder.replace("s3://", "s3a://", 1)
            if self.entry.folder.startswith("s3://")
            else (f"file://{self.entry.folder}")
        )
        written = self.entry.format or "parquet"
        options = {"header": "true"} if written == "csv" else {}
        values.coalesce(1).write.mode("overwrite").format(written).options(**options).save(
            f"{folder.rstrip('/')}{below}"
        )

"""Where a derived table's rows go besides the table: a topic of Kafka, a folder of files, and the console.

All are written before the table's commit. If the run ends in between, the next one repeats the rows: a topic
gets them twice, with the same keys, and a folder gets the same files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.derive.messages import avro_messages, json_messages
from spark_app.derive.result_rows import columns_of
from spark_app.derive.spark_words import words_of
from spark_app.reports import DerivedRow, ProgressWriter
from spark_app.schema_registry.registry import SchemaStore
from tributary.contract.derived import Derived
from tributary.contract.errors import TributaryError

MOST_PRINTED = 1_000
"""How many rows of a commit are printed."""


class OutputNotWritten(TributaryError):
    """A topic or a folder that the run could not write. The table has no commit with these rows yet."""


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
            messages = self._messages(rows, self.entry.topic)
            with self._telling("topic", self.entry.topic, "a topic that this run may write"):
                messages.write.format("kafka").options(
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
        files = values.coalesce(1).write.mode("overwrite").format(written).options(**options)
        expected = f"a folder that this run may write, and columns that {written} can hold"
        with self._telling("folder", self.entry.folder, expected):
            files.save(f"{folder.rstrip('/')}{below}")

    @contextmanager
    def _telling(self, entry: str, output: str, expected: str) -> Iterator[None]:
        """Raise OutputNotWritten, with the entry, for an error of Spark. The rows were computed before."""
        try:
            yield
        except (PySparkException, Py4JJavaError) as error:
            raise OutputNotWritten(
                f"the {entry} could not be written",
                where=f"[derived.{self.table.rpartition('.')[2]}].{entry}",
                found=f"{output}: {words_of(error)}",
                expected=expected,
                remedy="Correct the entry, or let the run write there. The next run repeats the rows.",
            ) from error

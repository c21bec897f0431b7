"""Create, change and read a small table without a server, so that the JVM loads the classes of a real run."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from spark_app.hudi.hudi_table import HudiTable
from spark_app.jvm import java_steps
from spark_app.positions.postgres import PostgresLog
from spark_app.run.session import start_session
from spark_app.sources.event import EVENT, OffsetRange, TopicExtent
from spark_app.steps import steps
from spark_app.table.table_ingest import TableIngest
from spark_app.wire.topic_form import TopicForm
from tributary.contract.lake import TablePolicy

TOPIC = "training.shop.public.things"
THINGS = 100
_SOURCE_US = 1_700_000_000_000_000


@dataclass(frozen=True)
class Things:
    """A source of events: inserts of all things, then updates of all, then deletes of all."""

    keeps_headers: ClassVar[bool] = True

    spark: SparkSession

    def topics(self) -> frozenset[str]:
        return frozenset({TOPIC})

    def extents(self, topics: frozenset[str]) -> Mapping[str, TopicExtent]:
        return dict.fromkeys(topics, TopicExtent({0: 0}, {0: 3 * THINGS}))

    def read(self, topic: str, ranges: tuple[OffsetRange, ...]) -> DataFrame:
        at = datetime.fromtimestamp(_SOURCE_US / 1_000_000, UTC)
        rows = [
            (topic, 0, offset, at, _key(offset % THINGS), _value(offset), None, None)
            for wanted in ranges
            for offset in range(wanted.first, wanted.until)
        ]
        return self.spark.createDataFrame(rows, EVENT)


def main(folder: Path) -> None:
    spark = start_session("class training")
    steps.use(java_steps)
    hudi = HudiTable(spark, str(folder / "silver"), "things", TablePolicy())
    table = TableIngest(
        "shop.public.things", TOPIC, Things(spark), hudi, str(folder / "quarantine"), TopicForm(PostgresLog())
    )
    for first in range(0, 3 * THINGS, THINGS):
        table.apply((OffsetRange(0, first, first + THINGS),))
    table.serve()
    hudi.read().count()
    jvm: Any = spark._jvm
    for talk in (_talk_to_s3, _talk_to_kafka):
        try:
            talk(spark, jvm)
        except Py4JError as error:
            print(f"No server answered, as expected: {str(error)[:200]}")
    spark.stop()


def _talk_to_s3(spark: SparkSession, jvm: Any) -> None:
    path = jvm.org.apache.hadoop.fs.Path("s3a://training/things")
    path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).exists(path)


def _talk_to_kafka(_: SparkSession, jvm: Any) -> None:
    deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    properties = jvm.java.util.Properties()
    for name, value in {
        "bootstrap.servers": "127.0.0.1:1",
        "default.api.timeout.ms": "500",
        "request.timeout.ms": "500",
        "key.deserializer": deserializer,
        "value.deserializer": deserializer,
    }.items():
        properties.setProperty(name, value)
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
    try:
        consumer.listTopics()
    finally:
        consumer.close()


def _key(thing: int) -> bytearray:
    return _framed(
        {
            "type": "struct",
            "optional": False,
            "name": f"{TOPIC}.Key",
            "fields": [_field("id", "int64", is_optional=False)],
        },
        {"id": thing},
    )


def _value(offset: int) -> bytearray:
    thing, kind = offset % THINGS, "cud"[offset // THINGS]
    row = {"type": "struct", "optional": True, "name": f"{TOPIC}.Value", "fields": _ROW}
    source = {"type": "struct", "optional": False, "field": "source", "fields": _SOURCE}
    schema = {
        "type": "struct",
        "optional": False,
        "name": f"{TOPIC}.Envelope",
        "fields": [
            {**row, "field": "before"},
            {**row, "field": "after"},
            source,
            _field("op", "string", is_optional=False),
        ],
    }
    lsn = 1_000 + offset
    return _framed(
        schema,
        {
            "before": {"id": thing, "name": None} if kind == "d" else None,
            "after": None if kind == "d" else {"id": thing, "name": f"thing {offset}"},
            "source": {
                "version": "3.7.0.Final",
                "ts_ms": _SOURCE_US // 1_000,
                "snapshot": "false",
                "sequence": json.dumps([str(lsn - 1), str(lsn)]),
                "ts_us": _SOURCE_US + offset,
                "txId": offset,
                "lsn": lsn,
            },
            "op": kind,
        },
    )


def _field(name: str, kind: str, *, is_optional: bool = True) -> Mapping[str, object]:
    return {"field": name, "type": kind, "optional": is_optional}


_ROW = [_field("id", "int64", is_optional=False), _field("name", "string")]
_SOURCE = [
    _field("version", "string", is_optional=False),
    _field("ts_ms", "int64", is_optional=False),
    _field("snapshot", "string"),
    _field("sequence", "string"),
    _field("ts_us", "int64"),
    _field("txId", "int64"),
    _field("lsn", "int64"),
]


def _framed(schema: Mapping[str, object], payload: Mapping[str, object]) -> bytearray:
    text = json.dumps({"schema": schema, "payload": payload}, separators=(",", ":"))
    return bytearray(text.encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))

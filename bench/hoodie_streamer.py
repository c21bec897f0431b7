"""The peer: HoodieStreamer on the same events, if PEER_HOME has an installation.

The module only measures and is not part of the product. `PEER_HOME` is a folder with `venv/` (its own
PySpark) and `jars/`.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.events import COLUMNS, KEY

_AVRO = {
    "bigint": "long",
    "text": "string",
    "numeric(12,2)": "double",
    "integer": "int",
    "smallint": "int",
    "boolean": "boolean",
    "double precision": "double",
    "timestamp": "long",
    "date": "int",
}
_SOURCE = {"name": "string", "ts_ms": "long", "txId": "long", "lsn": "long", "xmin": "long"}
_METADATA = {
    "_change_operation_type": ("op", "string"),
    "_upstream_event_processed_ts_ms": ("ts_ms", "long"),
    "db_shard_source_partition": ("source.name", "string"),
    "_event_origin_ts_ms": ("source.ts_ms", "long"),
    "_event_tx_id": ("source.txId", "long"),
    "_event_lsn": ("source.lsn", "long"),
    "_event_xmin": ("source.xmin", "long"),
}
"""The columns that PostgresDebeziumAvroPayload reads, with the event's field and its type."""

_CHECKPOINT = "deltastreamer.checkpoint.key"
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Commit:
    """A commit of HoodieStreamer.

    completed   seconds since 1970
    checkpoint  modification time of the last file that it read, in milliseconds
    """

    completed: float
    checkpoint: int


@dataclass(frozen=True)
class HoodieStreamer:
    """An installation of HoodieStreamer in `home` (PEER_HOME). `folder` takes its configuration and log."""

    home: Path
    folder: Path
    buckets: int
    memory: str = "5g"

    def run(self, events: Path, target: Path, bytes_per_batch: int, timeout_seconds: float) -> int:
        """Apply the files of JSON lines in `events`, ordered by modification time, until none is new.

        Returns the peak memory of its JVM in bytes.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        properties = self._write_config()
        command = self._command(events, target, bytes_per_batch, properties)
        spark_home = next((self.home / "venv").glob("lib/python*/site-packages/pyspark"))
        environment = {
            **os.environ,
            "SPARK_HOME": str(spark_home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TZ": "UTC",
        }
        log = self.folder / "log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [str(spark_home / "bin" / "spark-submit"), *command],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )
            peak = _watch(process, timeout_seconds)
        if process.returncode != 0:
            raise RuntimeError(f"HoodieStreamer ended with status {process.returncode}: see {log}")
        return peak

    def _command(self, events: Path, target: Path, bytes_per_batch: int, properties: Path) -> Sequence[str]:
        jars = self.home / "jars"
        streamer = next(jars.glob("hudi-utilities-relocated-*.jar"))
        others = [
            str(jar)
            for name in ("hudi-spark3*-bundle_*", "jcommander-*", "kafka-clients-*", "spark-*")
            for jar in sorted(jars.glob(f"{name}.jar"))
        ]
        conf = {
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(self.folder / "scratch"),
        }
        payload = "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload"
        return [
            *("--master", "local[2]", "--driver-memory", self.memory),
            *[part for name, value in conf.items() for part in ("--conf", f"{name}={value}")],
            *("--jars", ",".join(others)),
            *("--class", "org.apache.hudi.utilities.streamer.HoodieStreamer", str(streamer)),
            *("--table-type", "MERGE_ON_READ", "--op", "UPSERT"),
            *("--target-base-path", str(target), "--target-table", "orders"),
            *("--props", properties.as_uri()),
            *("--source-class", "org.apache.hudi.utilities.sources.JsonDFSSource"),
            *("--source-ordering-field", "_event_lsn", "--payload-class", payload),
            *("--schemaprovider-class", "org.apache.hudi.utilities.schema.FilebasedSchemaProvider"),
            *("--transformer-class", "org.apache.hudi.utilities.transform.SqlQueryBasedTransformer"),
            *("--hoodie-conf", f"hoodie.streamer.source.dfs.root={events}"),
            *("--hoodie-conf", f"hoodie.deltastreamer.source.dfs.root={events}"),
            *("--source-limit", str(bytes_per_batch), "--continuous"),
            "--post-write-termination-strategy-class",
            "org.apache.hudi.utilities.streamer.NoNewDataTerminationStrategy",
            *("--hoodie-conf", "max.rounds.without.new.data.to.shutdown=1"),
            # No contender compacts during the catch-up.
            "--disable-compaction",
        ]

    def _write_config(self) -> Path:
        source, target = self.folder / "source.avsc", self.folder / "target.avsc"
        row = {name: _AVRO[data_type] for name, data_type in COLUMNS.items()}
        envelope = {
            "before": _record("before", row),
            "after": _record("after", row),
            "source": _record("source", _SOURCE),
            "op": "string",
            "ts_ms": "long",
        }
        metadata = {column: data_type for column, (_, data_type) in _METADATA.items()}
        source.write_text(json.dumps(_record("envelope", envelope)))
        target.write_text(json.dumps(_record("target", {**metadata, **row})))
        properties = {
            **_schema_files(source, target),
            **dict.fromkeys(
                ("hoodie.streamer.transformer.sql", "hoodie.deltastreamer.transformer.sql"), _transformation()
            ),
            "hoodie.datasource.write.recordkey.field": KEY,
            "hoodie.datasource.write.precombine.field": "_event_lsn",
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.keygenerator.class": (
                "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
            ),
            "hoodie.index.type": "BUCKET",
            "hoodie.index.bucket.engine": "SIMPLE",
            "hoodie.bucket.index.num.buckets": str(self.buckets),
            "hoodie.bucket.index.hash.field": KEY,
            "hoodie.metadata.enable": "false",
            "hoodie.embed.timeline.server": "false",
            "hoodie.write.markers.type": "DIRECT",
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.compact.inline": "false",
            "hoodie.clean.automatic": "false",
        }
        path = self.folder / "streamer.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        return path


def commits(target: Path) -> list[Commit]:
    """Return the completed commits, oldest first."""
    found = []
    for file in sorted((target / ".hoodie").glob("*.deltacommit")):
        metadata = json.loads(file.read_text())["extraMetadata"]
        if _CHECKPOINT in metadata:
            found.append(Commit(file.stat().st_mtime, int(metadata[_CHECKPOINT])))
    return found


def wire_columns() -> list[str]:
    """Return SQL expressions that turn a row of the peer's table into a row as on the wire."""
    return [
        f"cast({name} as decimal(12,2)) as {name}" if data_type.startswith("numeric") else name
        for name, data_type in COLUMNS.items()
    ]


def _watch(process: subprocess.Popen[bytes], timeout_seconds: float) -> int:
    """Wait for the process to end. Return its highest observed memory in bytes."""
    peak, deadline = 0, time.monotonic() + timeout_seconds
    try:
        while process.poll() is None:
            for found in _with_children(process.pid):
                peak = max(peak, found)
            if time.monotonic() > deadline:
                raise TimeoutError(f"HoodieStreamer took longer than {timeout_seconds:.0f} s")
            time.sleep(_POLL_SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return peak


def _with_children(pid: int) -> Iterator[int]:
    try:
        process = psutil.Process(pid)
        for found in (process, *process.children(recursive=True)):
            yield found.memory_info().rss
    except psutil.NoSuchProcess:
        return


def _schema_files(source: Path, target: Path) -> Mapping[str, str]:
    return {
        f"hoodie.{prefix}.schemaprovider.{role}.schema.file": str(path)
        for prefix in ("streamer", "deltastreamer")
        for role, path in (("source", source), ("target", target))
    }


def _transformation() -> str:
    metadata = [f"{of} as {column}" for column, (of, _) in _METADATA.items()]
    row = [f"case when op = 'd' then before.{name} else after.{name} end as {name}" for name in COLUMNS]
    return f"SELECT {', '.join([*metadata, *row])} FROM <SRC>"


def _record(name: str, fields: Mapping[str, object]) -> Mapping[str, object]:
    return {
        "type": "record",
        "name": name,
        "namespace": "bench",
        "fields": [
            {"name": field, "type": ["null", data_type], "default": None}
            for field, data_type in fields.items()
        ],
    }

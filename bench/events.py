"""The events that Debezium would send for one busy table, and the final table, for the throughput benchmarks.

Spark expressions derive every event from its number and the seed. So millions of events take seconds, and
every contender gets the same ones. Results are checked against this module: it shares no code with the app.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

TOPIC = "bench.shop.public.orders"
TABLE = "shop.public.orders"
KEY = "id"

COLUMNS: Mapping[str, str] = {
    "id": "bigint",
    "customer_id": "bigint",
    "status": "text",
    "currency": "text",
    "amount": "numeric(12,2)",
    "quantity": "integer",
    "priority": "smallint",
    "is_gift": "boolean",
    "email": "text",
    "address": "text",
    "note": "text",
    "weight": "double precision",
    "placed": "timestamp",
    "due": "date",
}
"""PostgreSQL type by column name, as a lake file declares them."""

WIRE_ROW = (
    "id bigint, customer_id bigint, status string, currency string, amount decimal(12,2), quantity int, "
    "priority int, is_gift boolean, email string, address string, note string, weight double, placed bigint, "
    "due int"
)
"""The schema of a row in an envelope: timestamps in microseconds, dates in days since 1970."""

_STATUSES = ("created", "paid", "packed", "sent", "delivered", "returned")
_CURRENCIES = ("EUR", "USD", "GBP", "SEK")
_START_US = 1_790_000_000_000_000
_START_LSN = 26_306_448
_BYTES_PER_CHANGE = 120
_EVENTS_PER_TRANSACTION = 3
_MICROSECONDS_PER_EVENT = 250
_SHARE_OF_READS = 0.2
_SHARE_OF_TOUCHES_OF_NEW_ROWS = 0.15
_STRIDE, _OTHER_STRIDE = 7_368_787, 2_750_159  # primes


@dataclass(frozen=True)
class Keys:
    """The distribution of the events over keys.

    snapshots      how often the snapshot reads each row. Two: a snapshot was interrupted and restarted.
    share_of_rows  the share of the preloaded rows that changes can touch. None: as many rows as are read.
    exponent       of the bounded power law that picks those rows
    new_every      every n-th streamed event inserts a new key
    deletes        the share of a row's pairs of changes that delete the row and create it again
    """

    name: str
    snapshots: int
    share_of_rows: float | None
    exponent: float
    new_every: int
    deletes: float


SPARSE = Keys("sparse", snapshots=1, share_of_rows=1.0, exponent=0.65, new_every=5, deletes=0.21)
"""About 1.6 events a key if there are as many events as rows."""

DENSE = Keys("dense", snapshots=2, share_of_rows=None, exponent=0.99, new_every=8, deletes=0.27)
"""About 5 events a key."""


@dataclass(frozen=True)
class Workload:
    """`events` changes of a table that held `preloaded` rows before them."""

    events: int
    preloaded: int
    keys: Keys
    seed: int = 7

    @property
    def reads(self) -> int:
        return int(self.events * _SHARE_OF_READS)

    @property
    def rows_read(self) -> int:
        return self.reads // self.keys.snapshots

    @property
    def pool(self) -> int:
        """The number of preloaded rows that the streamed changes can touch."""
        share = self.keys.share_of_rows
        return self.rows_read if share is None else int(self.preloaded * share)


@dataclass(frozen=True)
class Summary:
    """A summary of a table's content. Equal tables have equal summaries in any row order."""

    rows: int
    checksum: int


def preloaded_rows(spark: SparkSession, workload: Workload) -> DataFrame:
    """Return `offset` and the row, as on the wire, of each row that is in the table before the events.

    The offsets are negative, so these rows come before all events.
    """
    numbers = spark.range(workload.preloaded).select(
        F.col("id"), (F.col("id") - workload.preloaded).alias("offset")
    )
    return numbers.select("offset", *row_columns(F.col("id"), F.col("offset"), workload.seed))


def changes(spark: SparkSession, workload: Workload) -> DataFrame:
    """Return `offset, id, op, snapshot`. `snapshot` is the snapshot's number, null for a streamed event."""
    numbered = _numbered(spark, workload)
    is_touch = F.col("kind") == "touch"
    # A pair of changes either updates a row twice, or deletes it and creates it again. So no change deletes
    # or updates a row that does not exist.
    place = F.row_number().over(Window.partitionBy("id", "kind").orderBy("offset")) - 1
    deletes = (
        _uniform(workload.seed, "pair", F.col("id"), F.floor(F.col("place") / 2)) < workload.keys.deletes
    )
    op = (
        F.when(F.col("kind") == "read", "r")
        .when(F.col("kind") == "new", "c")
        .when(~deletes, "u")
        .otherwise(F.when(F.col("place") % 2 == 0, "d").otherwise("c"))
    )
    placed = numbered.select("*", F.when(is_touch, place).alias("place"))
    return placed.select("offset", "id", op.alias("op"), "snapshot")


def envelopes(changes: DataFrame, workload: Workload) -> DataFrame:
    """Return `offset`, `key` and `value` of each event, as Debezium sends it in JSON without schemas."""
    offset, op = F.col("offset"), F.col("op")
    row = F.struct(*row_columns(F.col("id"), offset, workload.seed))
    nothing = F.lit(None)
    sent_us = F.col("ts_us") + 40_000
    envelope = F.struct(
        F.when(op == "d", _invented()).alias("before"),
        F.when(op != "d", row).alias("after"),
        F.struct(
            F.lit("3.7.0.Final").alias("version"),
            F.lit("postgresql").alias("connector"),
            F.lit("bench").alias("name"),
            F.floor(F.col("ts_us") / 1000).alias("ts_ms"),
            _snapshot_mark(workload).alias("snapshot"),
            F.lit("shop").alias("db"),
            _sequence(workload).alias("sequence"),
            F.col("ts_us").alias("ts_us"),
            (F.col("ts_us") * 1000).alias("ts_ns"),
            F.lit("public").alias("schema"),
            F.lit("orders").alias("table"),
            _transaction().alias("txId"),
            _lsn().alias("lsn"),
            nothing.cast("bigint").alias("xmin"),
            nothing.cast("string").alias("origin"),
            nothing.cast("bigint").alias("origin_lsn"),
        ).alias("source"),
        nothing.cast("string").alias("transaction"),
        op.alias("op"),
        F.floor(sent_us / 1000).alias("ts_ms"),
        sent_us.alias("ts_us"),
        (sent_us * 1000).alias("ts_ns"),
    )
    timed = changes.select("*", _source_us().alias("ts_us"))
    return timed.select(
        "offset",
        F.concat(F.lit('{"id":'), F.col("id").cast("string"), F.lit("}")).alias("key"),
        F.to_json(envelope, {"ignoreNullFields": "false"}).alias("value"),
    )


def with_schemas(envelopes: DataFrame) -> DataFrame:
    """Return the same events with inline schemas, JsonConverter's default."""
    return envelopes.select(
        "offset", _framed(KEY_SCHEMA, "key").alias("key"), _framed(VALUE_SCHEMA, "value").alias("value")
    )


def expected_rows(spark: SparkSession, changes: DataFrame, workload: Workload) -> DataFrame:
    """Return the rows, as on the wire, that must be in the table after the events."""
    last = Window.partitionBy("id").orderBy(F.col("offset").desc())
    last_changes = (
        changes.select("id", "offset", "op", F.row_number().over(last).alias("place"))
        .where(F.col("place") == 1)
        .drop("place")
    )
    untouched = preloaded_rows(spark, workload).join(last_changes, "id", "left_anti").select("id", "offset")
    there = last_changes.where(F.col("op") != "d").select("id", "offset").unionByName(untouched)
    return there.select(*row_columns(F.col("id"), F.col("offset"), workload.seed))


def summary(wire_rows: DataFrame) -> Summary:
    """Return the summary of rows as on the wire (`WIRE_ROW`)."""
    hashed = F.xxhash64(*[F.col(name) for name in COLUMNS])
    found = wire_rows.select(hashed.alias("hashed")).agg(
        F.count("*").alias("rows"), F.sum(F.col("hashed").cast("decimal(38,0)")).alias("checksum")
    )
    row = found.collect()[0]
    return Summary(rows=row["rows"], checksum=int(row["checksum"] or 0))


@dataclass(frozen=True)
class Shape:
    """The measured mix of the events: the share of each operation, and the mean number of events a key."""

    shares: Mapping[str, float]
    events_per_key: float


def shape(changes: DataFrame) -> Shape:
    counts = {row["op"]: row["count"] for row in changes.groupBy("op").count().collect()}
    keys = changes.select(F.count_distinct("id")).collect()[0][0]
    events = sum(counts.values())
    return Shape(
        {op: round(count / events, 4) for op, count in sorted(counts.items())}, round(events / keys, 2)
    )


def lake_columns() -> list[Column]:
    """Return the columns of a row as on the wire (`WIRE_ROW`), cast to the lake's types."""
    typed = {"placed": F.timestamp_micros("placed"), "due": F.date_from_unix_date("due")}
    return [typed.get(name, F.col(name)).alias(name) for name in COLUMNS]


def row_columns(key: Column, version: Column, seed: int) -> list[Column]:
    """Return the columns of a row, as on the wire, after the event `version`."""
    text, number = F.xxhash64(key, version, F.lit(seed)), F.xxhash64(version, key, F.lit(seed + 1))
    customer = F.pmod(F.xxhash64(key, F.lit(seed)), F.lit(200_000))
    digits = F.hex(text)
    note = F.when(F.pmod(text, F.lit(10)) >= 3, F.concat(F.lit('please ring "twice", code '), digits))
    values = {
        "id": key,
        "customer_id": customer,
        "status": _one_of(_STATUSES, text),
        "currency": _one_of(_CURRENCIES, customer),
        "amount": (F.pmod(number, F.lit(99_999_999)).cast("decimal(12,0)") / 100).cast("decimal(12,2)"),
        "quantity": F.pmod(number, F.lit(1_000)).cast("int"),
        "priority": F.pmod(number, F.lit(9)).cast("int"),
        "is_gift": F.pmod(text, F.lit(2)) == 0,
        "email": F.concat(F.lit("customer."), customer.cast("string"), F.lit("@example.org")),
        "address": F.concat(
            F.pmod(number, F.lit(300)).cast("string"), F.lit(" Härnö Street, "), F.substring(digits, 1, 6)
        ),
        "note": note,
        "weight": F.pmod(number, F.lit(1_000_000)) / 1_000,
        "placed": F.lit(_START_US) - F.pmod(F.xxhash64(key), F.lit(10**13)),
        "due": F.lit(20_700) + F.pmod(text, F.lit(90)).cast("int"),
    }
    return [values[name].alias(name) for name in COLUMNS]


def _numbered(spark: SparkSession, workload: Workload) -> DataFrame:
    """Return `offset, id, kind, snapshot`: the snapshot's reads, then inserts and changes of older rows."""
    keys, offset = workload.keys, F.col("offset")
    streamed = offset - workload.reads
    inserted = F.floor(streamed / keys.new_every)
    chance = _uniform(workload.seed, "chance", offset)
    of_inserted = F.least(F.floor(_uniform(workload.seed, "new", offset) * inserted), inserted - 1)
    is_of_new = (inserted > 0) & (chance < _SHARE_OF_TOUCHES_OF_NEW_ROWS)
    rank = _bounded_power_law(_uniform(workload.seed, "rank", offset), workload.pool, keys.exponent)
    touched = F.when(is_of_new, workload.preloaded + of_inserted).otherwise(
        _pool_row(_spread(rank, workload.pool, _OTHER_STRIDE), workload)
    )
    kind = (
        F.when(offset < workload.reads, "read")
        .when(F.pmod(streamed, F.lit(keys.new_every)) == keys.new_every - 1, "new")
        .otherwise("touch")
    )
    is_read = F.col("kind") == "read"
    key = (
        F.when(is_read, _pool_row(F.pmod(offset, F.lit(workload.rows_read)), workload))
        .when(F.col("kind") == "new", workload.preloaded + inserted)
        .otherwise(touched)
    )
    return (
        spark.range(workload.events)
        .select(F.col("id").alias("offset"))
        .select("offset", kind.alias("kind"))
        .select(
            "offset",
            key.cast("bigint").alias("id"),
            "kind",
            F.when(is_read, F.floor(offset / workload.rows_read)).cast("int").alias("snapshot"),
        )
    )


def _pool_row(number: Column, workload: Workload) -> Column:
    return _spread(number, workload.preloaded, _STRIDE)


def _spread(number: Column, size: int, stride: int) -> Column:
    """Permute 0 to size - 1, so that neighbors in rank are not neighbors in the table."""
    assert gcd(stride, size) == 1
    return F.pmod(number * stride, F.lit(size))


def _bounded_power_law(uniform: Column, size: int, exponent: float) -> Column:
    """Return a rank from 0 to size - 1 whose probability falls as rank^-exponent.

    Applies the inverse of the distribution function to a uniform number.
    """
    power = 1.0 - exponent
    span = float(size + 1) ** power - 1.0
    rank = F.floor(F.pow(uniform * span + 1.0, F.lit(1.0 / power))) - 1
    return F.least(F.greatest(rank, F.lit(0)), F.lit(size - 1)).cast("bigint")


def _uniform(seed: int, what: str, *of: Column) -> Column:
    """Return a pseudo-random number in [0, 1)."""
    return F.pmod(F.xxhash64(F.lit(seed), F.lit(what), *of), F.lit(2**52)) / F.lit(float(2**52))


def _one_of(values: tuple[str, ...], number: Column) -> Column:
    return F.element_at(F.array(*map(F.lit, values)), (F.pmod(number, F.lit(len(values))) + 1).cast("int"))


def _invented() -> Column:
    """Return the `before` of a delete under the default replica identity: the key, and invented values."""
    return F.struct(
        F.col("id"),
        F.lit(0).cast("bigint").alias("customer_id"),
        *[F.lit("").alias(name) for name in ("status", "currency")],
        F.lit(0).cast("decimal(12,2)").alias("amount"),
        *[F.lit(0).alias(name) for name in ("quantity", "priority")],
        F.lit(False).alias("is_gift"),
        *[F.lit("").alias(name) for name in ("email", "address")],
        F.lit(None).cast("string").alias("note"),
        F.lit(0.0).alias("weight"),
        F.lit(0).cast("bigint").alias("placed"),
        F.lit(0).alias("due"),
    )


def _snapshot_mark(workload: Workload) -> Column:
    place = F.pmod(F.col("offset"), F.lit(workload.rows_read))
    is_last = (F.col("snapshot") == workload.keys.snapshots - 1) & (place == workload.rows_read - 1)
    return (
        F.when(F.col("snapshot").isNull(), "false")
        .when(place == 0, "first")
        .when(is_last, "last")
        .otherwise("true")
    )


def _transaction() -> Column:
    of_stream = 1_000 + F.floor(F.col("offset") / _EVENTS_PER_TRANSACTION)
    return F.when(F.col("snapshot").isNotNull(), 700 + F.col("snapshot")).otherwise(of_stream).cast("bigint")


def _lsn() -> Column:
    of_stream = _START_LSN + 10_000 + F.col("offset") * _BYTES_PER_CHANGE
    of_snapshot = F.lit(_START_LSN) + F.col("snapshot") * 1_000
    return F.when(F.col("snapshot").isNotNull(), of_snapshot).otherwise(of_stream).cast("bigint")


def _sequence(workload: Workload) -> Column:
    """Return the text of the pair [LSN of the last commit before the transaction, LSN of the change].

    The first is null in a snapshot and right after it: Debezium has not seen a commit yet.
    """
    first_of_transaction = F.floor(F.col("offset") / _EVENTS_PER_TRANSACTION) * _EVENTS_PER_TRANSACTION
    last_commit = _START_LSN + 10_000 + first_of_transaction * _BYTES_PER_CHANGE - 8
    is_first = F.col("snapshot").isNotNull() | (first_of_transaction <= workload.reads)
    commit = F.when(is_first, "null").otherwise(F.concat(F.lit('"'), last_commit.cast("string"), F.lit('"')))
    return F.concat(F.lit("["), commit, F.lit(',"'), _lsn().cast("string"), F.lit('"]'))


def _source_us() -> Column:
    first_of_transaction = F.floor(F.col("offset") / _EVENTS_PER_TRANSACTION) * _EVENTS_PER_TRANSACTION
    of_stream = _START_US + 60_000_000 + first_of_transaction * _MICROSECONDS_PER_EVENT
    of_snapshot = F.lit(_START_US) + F.col("snapshot") * 20_000_000
    return F.when(F.col("snapshot").isNotNull(), of_snapshot).otherwise(of_stream).cast("bigint")


_CONNECT: Mapping[str, Mapping[str, object]] = {
    "bigint": {"type": "int64"},
    "text": {"type": "string"},
    "integer": {"type": "int32"},
    "smallint": {"type": "int16"},
    "boolean": {"type": "boolean"},
    "double precision": {"type": "double"},
    "timestamp": {"type": "int64", "name": "io.debezium.time.MicroTimestamp", "version": 1},
    "date": {"type": "int32", "name": "io.debezium.time.Date", "version": 1},
    "numeric(12,2)": {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": "2", "connect.decimal.precision": "12"},
    },
}


def _field(name: str, data_type: str, *, optional: bool) -> Mapping[str, object]:
    return {**_CONNECT[data_type], "optional": optional, "field": name}


def _value_schema() -> str:
    fields = [_field(name, data_type, optional=name == "note") for name, data_type in COLUMNS.items()]
    row = {"type": "struct", "fields": fields, "optional": True, "name": f"{TOPIC}.Value"}
    source = {
        **dict.fromkeys(("version", "connector", "name"), "text"),
        "ts_ms": "bigint",
        **dict.fromkeys(("snapshot", "db", "sequence"), "text"),
        **dict.fromkeys(("ts_us", "ts_ns"), "bigint"),
        **dict.fromkeys(("schema", "table"), "text"),
        **dict.fromkeys(("txId", "lsn", "xmin"), "bigint"),
        "origin": "text",
        "origin_lsn": "bigint",
    }
    required = {"version", "connector", "name", "ts_ms", "db", "schema", "table"}
    block = {"id": "text", "total_order": "bigint", "data_collection_order": "bigint"}
    envelope = {
        "type": "struct",
        "fields": [
            {**row, "field": "before"},
            {**row, "field": "after"},
            {
                "type": "struct",
                "fields": [_field(n, t, optional=n not in required) for n, t in source.items()],
                "optional": False,
                "name": "io.debezium.connector.postgresql.Source",
                "version": 1,
                "field": "source",
            },
            {
                "type": "struct",
                "fields": [_field(n, t, optional=False) for n, t in block.items()],
                "optional": True,
                "name": "event.block",
                "version": 1,
                "field": "transaction",
            },
            _field("op", "text", optional=False),
            *[_field(name, "bigint", optional=True) for name in ("ts_ms", "ts_us", "ts_ns")],
        ],
        "optional": False,
        "name": f"{TOPIC}.Envelope",
        "version": 2,
    }
    return json.dumps(envelope, separators=(",", ":"))


VALUE_SCHEMA = _value_schema()
KEY_SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [_field(KEY, COLUMNS[KEY], optional=False)],
        "optional": False,
        "name": f"{TOPIC}.Key",
    },
    separators=(",", ":"),
)


def _framed(schema: str, payload: str) -> Column:
    return F.concat(F.lit(f'{{"schema":{schema},"payload":'), F.col(payload), F.lit("}"))

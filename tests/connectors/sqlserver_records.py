"""Records that Debezium's own classes for SQL Server write for rows as the JDBC driver reads them.

No server runs here. So the rows, their types and LSNs are ours, after the driver's and Debezium's sources.
From there on, everything is Debezium's: the schemas, the conversion of values, the positions, the JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connectors.engines.sqlserver.connector import render
from tests.connectors.deployments import local_deployment
from tributary.contract.engines.sqlserver import SqlServerSource
from tributary.contract.lake import Lake, parse_lake

LAKE = parse_lake(
    '[lake]\nname = "lake"\n[source.source]\nengine = "sqlserver"\ndatabase = "shop"\ntables = ["dbo.*"]\n'
)
PLACEHOLDER = "__debezium_unavailable_value"


def source_of(lake: Lake) -> SqlServerSource:
    (source,) = lake.sources
    assert isinstance(source, SqlServerSource)
    return source


@dataclass(frozen=True)
class Column:
    """A column as DatabaseMetaData.getColumns of Microsoft's driver describes it.

    jdbc  its java.sql.Types, or one of the driver's own
    """

    name: str
    type: str
    jdbc: int
    length: int = 0
    scale: int | None = None
    is_optional: bool = True


BIT, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, NUMERIC, DECIMAL = -7, -6, 5, 4, -5, 7, 8, 2, 3
CHAR, VARCHAR, LONGVARCHAR, NCHAR, NVARCHAR, LONGNVARCHAR = 1, 12, -1, -15, -9, -16
BINARY, VARBINARY, LONGVARBINARY, DATE, TIME, TIMESTAMP, DATETIMEOFFSET = -2, -3, -4, 91, 92, 93, -155

ALL_TYPES = (
    Column("id", "int identity", INTEGER, 10, 0, is_optional=False),
    Column("a_bit", "bit", BIT, 1),
    Column("a_tinyint", "tinyint", TINYINT, 3, 0),
    Column("a_smallint", "smallint", SMALLINT, 5, 0),
    Column("an_int", "int", INTEGER, 10, 0),
    Column("a_bigint", "bigint", BIGINT, 19, 0),
    Column("a_real", "real", REAL, 24),
    Column("a_float", "float", DOUBLE, 53),
    Column("a_decimal", "decimal", DECIMAL, 38, 10),
    Column("a_numeric", "numeric", NUMERIC, 18, 0),
    Column("an_identity", "numeric() identity", NUMERIC, 20, 0),
    Column("a_smallmoney", "smallmoney", DECIMAL, 10, 4),
    Column("a_money", "money", DECIMAL, 19, 4),
    Column("a_char", "char", CHAR, 5),
    Column("a_varchar", "varchar", VARCHAR, 50),
    Column("a_varchar_max", "varchar", LONGVARCHAR, 2_147_483_647),
    Column("a_text", "text", LONGVARCHAR, 2_147_483_647),
    Column("an_nchar", "nchar", NCHAR, 5),
    Column("an_nvarchar", "nvarchar", NVARCHAR, 50),
    Column("an_nvarchar_max", "nvarchar", LONGNVARCHAR, 1_073_741_823),
    Column("an_ntext", "ntext", LONGNVARCHAR, 1_073_741_823),
    Column("an_xml", "xml", LONGNVARCHAR, 1_073_741_823),
    Column("a_uniqueidentifier", "uniqueidentifier", CHAR, 36),
    Column("a_binary", "binary", BINARY, 3),
    Column("a_varbinary", "varbinary", VARBINARY, 50),
    Column("a_varbinary_max", "varbinary", LONGVARBINARY, 2_147_483_647),
    Column("an_image", "image", LONGVARBINARY, 2_147_483_647),
    Column("a_rowversion", "timestamp", BINARY, 8),
    Column("a_date", "date", DATE, 10),
    Column("a_time_0", "time", TIME, 8, 0),
    Column("a_time_7", "time", TIME, 16, 7),
    Column("a_smalldatetime", "smalldatetime", TIMESTAMP, 16, 0),
    Column("a_datetime", "datetime", TIMESTAMP, 23, 3),
    Column("a_datetime2_3", "datetime2", TIMESTAMP, 23, 3),
    Column("a_datetime2_7", "datetime2", TIMESTAMP, 27, 7),
    Column("a_datetimeoffset", "datetimeoffset", DATETIMEOFFSET, 34, 7),
)


@dataclass
class Debezium:
    """The connector's classes, with its rendered options, and the records that they made of one table."""

    jvm: Any
    table: str = "all_types"
    columns: Sequence[Column] = ALL_TYPES
    records: list[Mapping[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        jvm, sqlserver = self.jvm, self.jvm.io.debezium.connector.sqlserver
        options = dict(render(LAKE, source_of(LAKE), local_deployment(LAKE)).config)
        config = getattr(jvm.io.debezium.config.Configuration, "from")(options)
        self.config = sqlserver.SqlServerConnectorConfig(config)
        topics = self.config.getTopicNamingStrategy(
            jvm.io.debezium.config.CommonConnectorConfig.TOPIC_NAMING_STRATEGY, True
        )
        self.table_id = jvm.io.debezium.relational.TableId("shop", "dbo", self.table)
        self.topic = topics.dataChangeTopic(self.table_id)
        self.schema = self._schema(topics)
        self.offset = sqlserver.SqlServerOffsetContext(self.config, sqlserver.TxLogPosition.NULL, None, False)
        json_converter = jvm.org.apache.kafka.connect.json.JsonConverter
        self.converters = {}
        for part in ("key", "value"):
            self.converters[part] = json_converter()
            prefix = f"{part}.converter."
            own = {name.removeprefix(prefix): value for name, value in options.items() if prefix in name}
            self.converters[part].configure(own, part == "key")

    def _schema(self, topics: Any) -> Any:
        jvm, config = self.jvm, self.config
        relational = jvm.io.debezium.relational
        editor = relational.Table.editor().tableId(self.table_id)
        for position, column in enumerate(self.columns, start=1):
            one = relational.Column.editor().name(column.name).type(column.type).jdbcType(column.jdbc)
            one = one.length(column.length).optional(column.is_optional).position(position)
            editor.addColumns([(one if column.scale is None else one.scale(column.scale)).create()])
        table = editor.setPrimaryKeyNames([self.columns[0].name]).create()
        values = jvm.io.debezium.connector.sqlserver.SqlServerValueConverters(
            config.getDecimalMode(),
            config.getTemporalPrecisionMode(),
            config.binaryHandlingMode(),
            config.getUnavailableValuePlaceholder(),
        )
        builder = relational.TableSchemaBuilder(
            values,
            None,
            config.schemaNameAdjuster(),
            relational.CustomConverterRegistry([]),
            config.getSourceInfoStructMaker().schema(),
            config.getFieldNamer(),
            True,
            config.getEventConvertingFailureHandlingMode(),
        )
        mappers = relational.mapping.ColumnMappers.create(config)
        return builder.create(topics, table, config.getColumnFilter(), mappers, config.getKeyMapper())

    @property
    def unavailable(self) -> Any:
        """What stands for the NULL of an unchanged large value (SqlServerChangeTablePointer)."""
        return self.jvm.io.debezium.connector.sqlserver.SqlServerValueConverters.UNAVAILABLE_VALUE

    def create(self, row: Sequence[Any], commit: str, change: str, at_ms: int) -> None:
        source = self._source(commit, change, 1, at_ms)
        self._send(row, self._envelope.create(self._value(row), source, self._instant(at_ms)))

    def update(self, old: Sequence[Any], new: Sequence[Any], commit: str, change: str, at_ms: int) -> None:
        source = self._source(commit, change, 2, at_ms)
        sent = self._envelope.update(self._value(old), self._value(new), source, self._instant(at_ms))
        self._send(new, sent)

    def delete(self, row: Sequence[Any], commit: str, change: str, at_ms: int) -> None:
        source = self._source(commit, change, 1, at_ms)
        self._send(row, self._envelope.delete(self._value(row), source, self._instant(at_ms)))
        self._append(row, None)

    def stored_offset(self) -> Mapping[str, Any]:
        """Return the offset of the last record, as Connect stores it."""
        return dict(self.offset.getOffset())

    @property
    def _envelope(self) -> Any:
        return self.schema.getEnvelopeSchema()

    def _value(self, row: Sequence[Any]) -> Any:
        return self.schema.valueFromColumnData(self._objects(row))

    def _objects(self, row: Sequence[Any]) -> Any:
        return self.jvm.java.util.ArrayList(list(row)).toArray()

    def _instant(self, at_ms: int) -> Any:
        return self.jvm.java.time.Instant.ofEpochMilli(at_ms)

    def _source(self, commit: str, change: str, rows: int, at_ms: int) -> Any:
        sqlserver = self.jvm.io.debezium.connector.sqlserver
        position = sqlserver.TxLogPosition.valueOf(
            sqlserver.Lsn.valueOf(commit), sqlserver.Lsn.valueOf(change)
        )
        self.offset.setChangePosition(position, rows)
        self.offset.event(self.table_id, self._instant(at_ms))
        return self.offset.getSourceInfo()

    def _send(self, row: Sequence[Any], envelope: Any) -> None:
        schema = self._envelope.schema()
        self._append(row, bytes(self.converters["value"].fromConnectData(self.topic, schema, envelope)))

    def _append(self, row: Sequence[Any], value: bytes | None) -> None:
        key = self.schema.keyFromColumnData(self._objects(row))
        written = bytes(self.converters["key"].fromConnectData(self.topic, self.schema.keySchema(), key))
        self.records.append(
            {
                "topic": self.topic,
                "partition": 0,
                "offset": len(self.records),
                "key": written.decode(),
                "value": None if value is None else value.decode(),
            }
        )


def row_of_all_types(jvm: Any, key: int) -> list[Any]:
    """Return a row of `ALL_TYPES` with large and unusual values, as the driver's getObject returns them."""
    decimal, timestamp = jvm.java.math.BigDecimal, jvm.java.sql.Timestamp.valueOf
    offset = jvm.microsoft.sql.DateTimeOffset.valueOf(timestamp("2024-12-16 23:59:59.9999999"), -330)
    return [
        key,
        True,
        255,
        -32_768,
        -2_147_483_648,
        9_223_372_036_854_775_807,
        jvm.java.lang.Float.valueOf("1.1754944E-38"),
        jvm.java.lang.Double.valueOf("0.1"),
        decimal("-9999999999999999999999999999.9999999999"),
        decimal("999999999999999999"),
        decimal("12345678901234567890"),
        decimal("-214748.3648"),
        decimal("922337203685477.5807"),
        "ab   ",
        "vär",
        "vär" * 5,
        "text",
        "çé   ",
        "😀 ñ",
        "😀" * 5,
        "ntext",
        '<a b="1">c</a>',
        "0E984725-C51C-4BF4-9960-E1C80E27ABA0",
        b"\x00\xff\x01",
        b"",
        b"\x01" * 9,
        b"\x02",
        b"\x00\x00\x00\x00\x00\x00\x07\xd1",
        jvm.java.sql.Date.valueOf("0001-01-01"),
        # Debezium reads a TIME with getTimestamp, because getTime has no fractions.
        timestamp("1970-01-01 23:59:59"),
        timestamp("1970-01-01 12:34:56.1234567"),
        timestamp("2079-06-06 23:59:00"),
        timestamp("1753-01-01 00:00:00.003"),
        timestamp("2024-02-29 12:00:00.123"),
        timestamp("9999-12-31 23:59:59.9999999"),
        offset,
    ]


def lines(records: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)

"""Declared columns: what Debezium would have written into the schema that an event lacks.

Source: Debezium's PostgreSQL connector, "Data type mappings" and `time.precision.mode`."""

from __future__ import annotations

from spark_app.wire.connect_schema import WRITTEN_AS_BASE64, ConnectSchema
from tributary.contract.column_types import ColumnType
from tributary.contract.source import Decimals, Times

_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_MONEY_SCALE = 2

_PLAIN = {
    "boolean": ConnectSchema("boolean"),
    "smallint": ConnectSchema("int16"),
    "integer": ConnectSchema("int32"),
    "bigint": ConnectSchema("int64"),
    "real": ConnectSchema("float"),
    "double precision": ConnectSchema("double"),
    "bytea": ConnectSchema("bytes"),
    "uuid": ConnectSchema("string", "io.debezium.data.Uuid"),
    "json": ConnectSchema("string", "io.debezium.data.Json"),
    "jsonb": ConnectSchema("string", "io.debezium.data.Json"),
    "xml": ConnectSchema("string", "io.debezium.data.Xml"),
    "time with time zone": ConnectSchema("string", "io.debezium.time.ZonedTime"),
    "timestamp with time zone": ConnectSchema("string", "io.debezium.time.ZonedTimestamp"),
}
_MILLISECONDS = {"time": ("int32", "Time"), "timestamp": ("int64", "Timestamp")}
_MICROSECONDS = {"time": ("int64", "MicroTime"), "timestamp": ("int64", "MicroTimestamp")}
_ISO = {"date": "IsoDate", "time": "IsoTime", "timestamp": "IsoTimestamp"}
_MILLISECOND_DIGITS = 3


def declared_columns(
    columns: tuple[tuple[str, ColumnType], ...], decimals: Decimals, times: Times
) -> tuple[tuple[str, ConnectSchema], ...]:
    """Return the schema that each of the columns would have in an event with a schema."""
    return tuple((name, _schema(column, decimals, times)) for name, column in columns)


def _schema(column: ColumnType, decimals: Decimals, times: Times) -> ConnectSchema:
    if column.is_array:
        items = _schema(ColumnType(column.name, column.arguments), decimals, times)
        return ConnectSchema("array", items=items)
    match column.name:
        case "numeric" if not column.arguments:
            return ConnectSchema("struct", "io.debezium.data.VariableScaleDecimal")
        case "numeric" | "money":
            return _decimal(column, decimals)
        case "date" | "time" | "timestamp":
            return _temporal(column, times)
        case name:
            return _PLAIN.get(name, ConnectSchema("string"))


def _decimal(column: ColumnType, decimals: Decimals) -> ConnectSchema:
    precision, scale = (*column.arguments, 0)[:2] if column.arguments else (None, _MONEY_SCALE)
    parameters = [("scale", str(scale))]
    if precision is not None:
        parameters.append(("connect.decimal.precision", str(precision)))
    if decimals == "base64":
        parameters.append(WRITTEN_AS_BASE64)
    return ConnectSchema("bytes", _DECIMAL, tuple(parameters))


def _temporal(column: ColumnType, times: Times) -> ConnectSchema:
    if times == "isostring":
        return ConnectSchema("string", f"io.debezium.time.{_ISO[column.name]}")
    package = "org.apache.kafka.connect.data" if times == "connect" else "io.debezium.time"
    if column.name == "date":
        return ConnectSchema("int32", f"{package}.Date")
    is_short = bool(column.arguments) and column.arguments[0] <= _MILLISECOND_DIGITS
    is_adaptive = times == "adaptive" or (
        times == "adaptive_time_microseconds" and column.name == "timestamp"
    )
    if times == "connect" or (is_adaptive and is_short):
        wire_type, name = _MILLISECONDS[column.name]
    else:
        wire_type, name = _MICROSECONDS[column.name]
    return ConnectSchema(wire_type, f"{package}.{name}")

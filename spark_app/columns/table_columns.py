"""The columns of a silver table: the app's own, the source's, and how the source's columns may change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_app.columns.app_columns import OPERATION, ORDERING, RECORD_KEY
from tributary.contract.column_names import ALLOWED_OF_SOURCES, HUDI_PREFIX, is_source_column_name
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import EditLakeFile, RebuildTable, RemedyOrText

DELETED = "_deleted"
LOG_POSITION = "_log_position"

APP_COLUMNS = StructType(
    [
        StructField(RECORD_KEY, StringType(), nullable=False),
        StructField(OPERATION, StringType(), nullable=False),
        StructField(ORDERING, LongType(), nullable=False),
        StructField("_source_ts", TimestampType()),
        StructField("_topic", StringType(), nullable=False),
        StructField("_partition", IntegerType(), nullable=False),
        StructField("_offset", LongType(), nullable=False),
        StructField(LOG_POSITION, BinaryType()),
    ]
)
"""The app's columns, which come before the source's.

`_key` is the JSON of each key column, and `_seq` the order of events. `_log_position` is the change's place
in the source's log (`SourceLog.log_position`). It is compared with a truncate that another partition brings.
"""


class UnusableColumnName(TributaryError):
    """A source column has a name that no column of a lake table can have."""


class SchemaConflict(TributaryError):
    """A change of the source's schema that the table cannot take without losing data."""


@dataclass(frozen=True)
class TableColumns:
    """The source's columns of a table: in the lake's types, in the lake's order, with the key's columns.

    own      the app's columns, which the table has before them
    untyped  columns whose type in the source is unknown; their values are texts, which other types can take
    """

    row: tuple[tuple[str, DataType], ...]
    key: tuple[str, ...]
    own: StructType = APP_COLUMNS
    untyped: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def row_type(self) -> StructType:
        return StructType([StructField(name, data_type) for name, data_type in self.row])

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.row)

    def retyped_since(self, before: TableColumns) -> tuple[str, ...]:
        """Return the columns that existed before with another type."""
        types = dict(before.row)
        return tuple(name for name, data_type in self.row if types.get(name, data_type) != data_type)

    @property
    def beside_key(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name not in self.key)


def columns_of_table(schema: StructType, key: tuple[str, ...]) -> TableColumns:
    """Return the source's columns of an existing table, from its schema as Spark reads it."""
    own = {*APP_COLUMNS.fieldNames(), DELETED}
    row = [
        (field.name, field.dataType)
        for field in schema.fields
        if field.name not in own and not field.name.startswith(HUDI_PREFIX)
    ]
    return TableColumns(row=tuple(row), key=key)


def merge(current: TableColumns | None, versions: Iterable[TableColumns]) -> TableColumns | None:
    """Return the columns that hold both what the table has and what the versions bring, oldest version first.

    Returns None if neither knows a key. (A truncate's record has no key, so its version has none either.) New
    columns come last, dropped columns stay, and types widen. Raises `SchemaConflict` if a type would have to
    change in a way that loses data, or if the key differs. Raises `UnusableColumnName`."""
    return _merge(current, versions, _wider)


def merge_anew(versions: Iterable[TableColumns]) -> TableColumns | None:
    """Do what `merge` does for a table that is rebuilt, and so has no types to keep.

    A column whose type has changed gets a type that holds its old and its new values: text, if no other
    type does."""
    return _merge(None, versions, _widest)


def _merge(
    current: TableColumns | None, versions: Iterable[TableColumns], wider: _Wider
) -> TableColumns | None:
    merged = current
    for version in sorted(versions, key=lambda v: not v.key):
        merged = version if merged is None else _merge_two(merged, version, wider)
    if merged is None or not merged.key:
        return None
    _check_names(merged.names)
    # The table has its types now.
    return replace(merged, untyped=frozenset())


def _check_names(names: tuple[str, ...]) -> None:
    unusable = [name for name in names if not is_source_column_name(name)]
    if unusable:
        raise UnusableColumnName(
            what="A column of the source table has a name that no column of a lake table can have",
            where=f"column{'s' if len(unusable) > 1 else ''} {', '.join(map(repr, unusable))}",
            expected=ALLOWED_OF_SOURCES,
            remedy="Rename the column, or leave it out with leave_out in the lake file, or with "
            "column.exclude.list in a connector of your own. Then start the ingest again.",
        )


def _merge_two(current: TableColumns, version: TableColumns, wider: _Wider) -> TableColumns:
    if version.key and version.key != current.key:
        raise SchemaConflict(
            what="The primary key of the source table is another one than the lake table's",
            found=f"key ({', '.join(version.key)})",
            expected=f"key ({', '.join(current.key)})",
            remedy=EditLakeFile("set the table's key to the one that the table was made with"),
        )
    row, untyped = dict(current.row), current.untyped
    for name, data_type in version.row:
        if name in version.untyped and takes_text(row.get(name)):
            continue
        if name in untyped and takes_text(data_type):
            row[name], untyped = data_type, untyped - {name}
            continue
        if name in current.key and (row[name] == StringType()) != (data_type == StringType()):
            # Two texts can stand for one number, so a row would be in the table twice.
            raise _conflict(name, row[name], data_type, "Change the column back: it is part of the key.")
        row[name] = data_type if name not in row else wider(name, row[name], data_type)
    untyped |= version.untyped - dict(current.row).keys()
    return TableColumns(row=tuple(row.items()), key=current.key, untyped=untyped)


def takes_text(data_type: DataType | None) -> bool:
    """Return whether a column of the type can take values of which only the text is known."""
    return isinstance(data_type, _WITH_TEXT)


_Wider = Callable[[str, DataType, DataType], DataType]
"""Returns, for a column's name and two of its types, the type that holds the values of both."""

_WIDENS_TO: dict[type[DataType], tuple[type[DataType], ...]] = {
    IntegerType: (LongType,),
    FloatType: (DoubleType,),
}


def _wider(name: str, current: DataType, new: DataType) -> DataType:
    if current == new or isinstance(new, _WIDENS_TO.get(type(current), ())):
        return new
    if isinstance(current, _WIDENS_TO.get(type(new), ())):
        return current
    if (decimal := _decimal_of_both(current, new)) is not None:
        return decimal
    if _is_text_of(current, new):
        return current
    advice = "Rebuild the table: the column then gets a type that holds both."
    raise _conflict(name, current, new, [advice, RebuildTable()])


def _conflict(name: str, current: DataType, new: DataType, remedy: RemedyOrText) -> SchemaConflict:
    return SchemaConflict(
        what="A column of the source table has changed to a type that the lake table cannot take",
        where=f"column {name}",
        found=new.simpleString(),
        expected=f"{current.simpleString()}, or a wider type of its kind",
        remedy=remedy,
    )


def _widest(name: str, one: DataType, other: DataType) -> DataType:
    try:
        return _wider(name, one, other)
    except SchemaConflict as conflict:
        if (text := _text_of_both(one, other)) is not None:
            return text
        remedy = "Change the column back, or add the values as a new column: no type holds both."
        raise _conflict(name, one, other, remedy) from conflict


_MAX_DECIMAL = 38


def _decimal_of_both(one: DataType, other: DataType) -> DecimalType | None:
    if not (isinstance(one, DecimalType) and isinstance(other, DecimalType)):
        return None
    scale = max(one.scale, other.scale)
    precision = scale + max(one.precision - one.scale, other.precision - other.scale)
    return DecimalType(precision, scale) if precision <= _MAX_DECIMAL else None


_WITH_TEXT = (
    *(StringType, IntegerType, LongType, FloatType, DoubleType, DecimalType),
    *(BooleanType, DateType, TimestampType),
)
"""Types whose values have one text each, which identifies the value."""


def _text_of_both(one: DataType, other: DataType) -> DataType | None:
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        element = _text_of_both(one.elementType, other.elementType)
        return None if element is None else ArrayType(element)
    return StringType() if isinstance(one, _WITH_TEXT) and isinstance(other, _WITH_TEXT) else None


def _is_text_of(text: DataType, new: DataType) -> bool:
    """Return whether the table holds as text a column that has another type in the source."""
    return _text_of_both(text, new) == text

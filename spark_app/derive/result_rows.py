"""The rows of a result as a derived table stores them, and how they differ from what is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from spark_app.columns.app_columns import DELETE_MARKER, OPERATION, ORDERING, RECORD_KEY
from spark_app.columns.table_columns import APP_COLUMNS, DELETED
from tributary.contract.column_names import ALLOWED, HUDI_PREFIX, is_column_name
from tributary.contract.errors import TributaryError

DERIVED = "u"
"""The `_op` of a derived table's rows."""

OWN = frozenset({RECORD_KEY, OPERATION, ORDERING})
"""The columns of Tributary that a derived table has."""
_APP = frozenset({*APP_COLUMNS.fieldNames(), DELETED})
_STORED_AS: Mapping[type[DataType], str] = {ByteType: "int", ShortType: "int", TimestampNTZType: "timestamp"}
"""Types that Avro does not have, or that other readers show differently."""


class ResultNotUsable(TributaryError):
    """A result that cannot be the rows of a table."""


@dataclass(frozen=True)
class Columns:
    """The result's columns as a derived table stores them, in the result's order."""

    types: tuple[tuple[str, DataType], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.types)

    def retyped_since(self, before: Columns) -> tuple[str, ...]:
        """Return the columns that existed before with another type."""
        types = dict(before.types)
        return tuple(name for name, data_type in self.types if types.get(name, data_type) != data_type)

    def is_same(self, other: Columns) -> bool:
        """Return whether both have the same columns with the same types, in any order."""
        return dict(self.types) == dict(other.types)


def stored_columns(schema: StructType) -> Columns:
    """Return the result's columns of a stored derived table."""
    return Columns(
        tuple(
            (field.name, field.dataType)
            for field in schema.fields
            if field.name not in OWN and not field.name.startswith(HUDI_PREFIX)
        )
    )


def check_result(result: DataFrame, key: Sequence[str]) -> None:
    """Check that the result's columns can be a table's. Raises `ResultNotUsable`."""
    names = [field.name for field in result.schema.fields]
    for name in names:
        if not is_column_name(name):
            raise ResultNotUsable(
                "a column has a name that no table's column has", found=name, expected=ALLOWED
            )
        if name in _APP:
            raise ResultNotUsable(
                "a column has the name of one of Tributary's own",
                found=name,
                remedy=f"Rename it, such as SELECT {name} AS source{name}.",
            )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ResultNotUsable("two columns have the same name", found=", ".join(twice))
    if missing := [name for name in key if name not in names]:
        raise ResultNotUsable(
            "the result lacks a column of the key", found=", ".join(names), expected=", ".join(missing)
        )
    for field in result.schema.fields:
        if isinstance(field.dataType, NullType | MapType):
            raise ResultNotUsable(
                "a column has a type that cannot be stored",
                found=f"{field.name}: {field.dataType.simpleString()}",
                remedy="Give it another type with CAST.",
            )


def table_rows(result: DataFrame, key: Sequence[str], number: int) -> DataFrame:
    """Return the result's rows as the table stores them in the commit with this number."""
    columns = [(field.name, _STORED_AS.get(type(field.dataType))) for field in result.schema.fields]
    plain = result.select(
        *(
            F.col(_quoted(name)) if cast is None else F.col(_quoted(name)).cast(cast).alias(name)
            for name, cast in columns
        )
    )
    keyed = plain.select(_key_of(key).alias(RECORD_KEY), *map(F.col, map(_quoted, plain.columns)))
    return keyed.select(
        F.col(RECORD_KEY),
        F.lit(DERIVED).alias(OPERATION),
        F.lit(number).cast(LongType()).alias(ORDERING),
        # A later version of the query's result may have a null where this one cannot.
        *(F.when(F.col(RECORD_KEY).isNotNull(), F.col(_quoted(name))).alias(name) for name in plain.columns),
    )


def without_hudi(rows: DataFrame) -> DataFrame:
    """Return the columns that `tributary query` shows."""
    return rows.drop(*(name for name in rows.columns if name.startswith(HUDI_PREFIX)))


def columns_of(rows: DataFrame) -> Columns:
    return stored_columns(rows.schema)


def check_keys(rows: DataFrame, key: Sequence[str]) -> None:
    """Check that each row has a key of its own. Raises `ResultNotUsable`. One Spark job."""
    twice = rows.groupBy(RECORD_KEY).count().where(F.col("count") > 1).head()
    if twice is not None:
        raise ResultNotUsable(
            f"{twice['count']} rows of the result have the same key",
            found=twice[RECORD_KEY],
            expected=f"one row for each value of {', '.join(key)}",
        )


def last_of_each_key(rows: DataFrame) -> DataFrame:
    """Return one row of each key: the one that sorts last by its values, in the order of the columns."""
    names = [name for name in rows.columns if name != RECORD_KEY]
    last = F.max(F.struct(*map(F.col, map(_quoted, names)))).alias("last")
    return (
        rows.groupBy(RECORD_KEY)
        .agg(last)
        .select(RECORD_KEY, *(F.col(f"last.{_quoted(name)}").alias(name) for name in names))
    )


def difference(rows: DataFrame, stored: DataFrame, number: int) -> DataFrame:
    """Return what to write so that `stored` becomes `rows`: new and changed rows, and deletes of the others.

    Both have the same columns of the result."""
    names = columns_of(rows).names
    was = stored.select(F.col(RECORD_KEY), _values(names).alias("was"))
    is_other = F.col("was").isNull() | ~F.col("is").eqNullSafe(F.col("was"))
    changed = (
        rows.withColumn("is", _values(names))
        .join(was, RECORD_KEY, "left")
        .where(is_other)
        .select(*rows.columns)
    )
    return changed.unionByName(deletes(stored, rows, number, rows.schema))


def replacement(rows: DataFrame, stored: DataFrame, number: int) -> DataFrame:
    """Return `rows`, and deletes of the stored rows whose keys they do not have.

    The stored rows may have other columns, so the deletes have values in Tributary's own columns alone."""
    gone = _deletes(lambda field: F.lit(None).cast(field.dataType), stored, rows, number, rows.schema)
    return rows.unionByName(gone)


def deletes(stored: DataFrame, rows: DataFrame, number: int, schema: StructType) -> DataFrame:
    """Return deletes of the stored rows whose keys are not in `rows`."""
    return _deletes(lambda field: F.col(_quoted(field.name)), stored, rows, number, schema)


def _deletes(
    value: Callable[[StructField], Column],
    stored: DataFrame,
    rows: DataFrame,
    number: int,
    schema: StructType,
) -> DataFrame:
    """Return the deletes with this value in each column that is not Tributary's own."""
    gone = stored.join(rows.select(RECORD_KEY), RECORD_KEY, "left_anti")
    own = {
        RECORD_KEY: F.col(RECORD_KEY),
        OPERATION: F.lit(DELETE_MARKER),
        ORDERING: F.lit(number).cast(LongType()),
    }
    return gone.select(
        *(own.get(field.name, value(field)).alias(field.name) for field in schema.fields),
    )


def _key_of(key: Sequence[str]) -> Column:
    values = [F.col(_quoted(name)) for name in key]
    return F.to_json(F.struct(*values), {"ignoreNullFields": "false"}).cast(StringType())


def _values(names: Sequence[str]) -> Column:
    return F.struct(*map(F.col, map(_quoted, names)))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

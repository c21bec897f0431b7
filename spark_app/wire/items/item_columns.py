"""The columns of a table of items: which attribute is in which column, and of which type."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
)

from spark_app.columns.table_columns import APP_COLUMNS, DELETED, TableColumns
from spark_app.wire.items.attributes import Item, attribute_type, widest
from tributary.contract.column_names import is_column_name
from tributary.contract.column_types import ColumnType
from tributary.contract.item_stream import ItemRules

OTHER_ATTRIBUTES = "other_attributes"
"""The column with the attributes that have no column of their own, as JSON."""

ALL_ATTRIBUTES = "attributes"
"""The column with all attributes except the key, as JSON, if the lake file asks for JSON."""

MOST_COLUMNS = 500
"""Items whose attributes have generated names would otherwise add columns without end."""

JSON = "json"

_OWN = {name.lower() for name in (*APP_COLUMNS.fieldNames(), DELETED, OTHER_ATTRIBUTES, ALL_ATTRIBUTES)}


@lru_cache(maxsize=10_000)
def column_of(attribute: str) -> str:
    """Return the name of an attribute's column.

    It is the attribute's own name if a column can have it. Otherwise other characters become underscores, and
    a digest at the end tells apart names that would become the same."""
    if is_column_name(attribute) and attribute.lower() not in _OWN:
        return attribute
    readable = re.sub(r"[^A-Za-z0-9]+", "_", attribute).strip("_")[:40]
    digest = hashlib.sha256(attribute.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    named = f"{readable}_{digest}" if readable else f"attribute_{digest}"
    return named if is_column_name(named) else f"_{named}"


def lake_type(column_type: ColumnType) -> DataType:
    """Return the lake's type for one that the lake file sets."""
    if column_type.name == "numeric":
        precision, scale = (*column_type.arguments, 0, 0)[:2]
        return DecimalType(precision, scale)
    return _LAKE_TYPES[column_type.name]


_LAKE_TYPES: Mapping[str, DataType] = {
    "text": StringType(),
    "json": StringType(),
    "bigint": LongType(),
    "double precision": DoubleType(),
    "boolean": BooleanType(),
    "bytea": BinaryType(),
}


@dataclass(frozen=True)
class Attributes:
    """The attributes that items have, and the types that hold their values.

    key    the attributes of the key, in the order of their names; empty if none is known
    types  by attribute; an attribute that has only been NULL is not among them
    """

    key: tuple[str, ...] = ()
    types: Mapping[str, DataType] = field(default_factory=dict)

    def with_item(self, keys: Item, image: Item | None) -> Attributes:
        """Return these attributes and those of one change. Raises `NotAnAttribute`."""
        found = {name: attribute_type(value) for name, value in {**(image or {}), **keys}.items()}
        known = {name: data_type for name, data_type in found.items() if data_type is not None}
        return self.with_others(Attributes(tuple(sorted(keys)), known))

    def with_others(self, other: Attributes) -> Attributes:
        new = {
            name: data_type if name not in self.types else widest(self.types[name], data_type)
            for name, data_type in other.types.items()
        }
        if (self.key or not other.key) and new.items() <= dict(self.types).items():
            return self
        return Attributes(self.key or other.key, {**self.types, **new})


@dataclass(frozen=True)
class ItemColumns:
    """Finds the columns of attributes, by the rules of one table."""

    rules: ItemRules

    def columns(self, current: TableColumns | None, seen: Attributes) -> TableColumns | None:
        """Return the columns that hold both what the table has and what was seen; None if no key is known.

        New columns come last, in the order of their names. Types widen, and none stops the table."""
        if current is None and not seen.key:
            return None
        key = current.key if current is not None else tuple(map(column_of, seen.key))
        row = dict(current.row) if current is not None else {}
        taken = {name.lower(): name for name in row}
        key_types = [(name, seen.types[name]) for name in seen.key if name in seen.types]
        others = sorted((name, found) for name, found in seen.types.items() if name not in seen.key)
        has_others = self.rules.attributes == "json"
        for attribute, found in (*key_types, *self._declared(), *others):
            name = column_of(attribute)
            is_free = name.lower() not in taken and len(row) < MOST_COLUMNS
            if name not in row and not (is_free and self._has_column(attribute, seen.key)):
                has_others = True
                continue
            row[name] = self._type(attribute, row.get(name), found)
            taken.setdefault(name.lower(), name)
        if has_others:
            row.setdefault(self.rest, StringType())
        return TableColumns(row=tuple(row.items()), key=key)

    @property
    def rest(self) -> str:
        """The column with the attributes that have none of their own."""
        return ALL_ATTRIBUTES if self.rules.attributes == "json" else OTHER_ATTRIBUTES

    def declared(self, attribute: str) -> ColumnType | None:
        """Return the type that the lake file sets for an attribute."""
        return dict(self.rules.types).get(attribute)

    def _declared(self) -> Iterable[tuple[str, DataType]]:
        return [(name, lake_type(column_type)) for name, column_type in self.rules.types]

    def _has_column(self, attribute: str, key: tuple[str, ...]) -> bool:
        is_named = attribute in key or self.declared(attribute) is not None
        return is_named or self.rules.attributes == "columns"

    def _type(self, attribute: str, current: DataType | None, found: DataType) -> DataType:
        declared = self.declared(attribute)
        wanted = found if declared is None else lake_type(declared)
        return wanted if current is None else widest(current, wanted)

"""Decode one record to a change, with its item as a row of the table's columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql.types import DataType

from spark_app.columns.table_columns import TableColumns
from spark_app.wire.items.attributes import (
    Attribute,
    DoesNotFit,
    Item,
    NotAnAttribute,
    attribute_type,
    json_of_item,
    json_text,
    plain_json,
    value_of,
)
from spark_app.wire.items.item_columns import JSON, MOST_COLUMNS, Attributes, ItemColumns, column_of
from spark_app.wire.items.record import ItemChange, UnreadableRecord, read_record
from spark_app.wire.reasons import MISMATCH, UNKNOWN_SCHEMA

Decoded = tuple[str | None, str | None, int | None, str | None, tuple[Any, ...] | None, str | None]
"""Operation, record key, time in microseconds, sequence number, row, and the reason if it is bad."""


def attributes_in(values: Iterable[bytes | None]) -> Attributes:
    """Return the attributes of all records that can be read."""
    found = Attributes()
    for value in values:
        if value is None:
            continue
        try:
            change = read_record(bytes(value))
            found = found.with_item(change.keys, change.image)
        except (UnreadableRecord, NotAnAttribute, RecursionError):
            continue
    return found


@dataclass(frozen=True)
class ItemDecoder:
    """Decodes records of one table. Workers get a copy, so it holds no connection and no session."""

    items: ItemColumns
    columns: TableColumns

    def __call__(self, key: bytes | None, value: bytes | None) -> Decoded | None:
        """Return the change in a record; None if the table's rules leave the change out.

        `key` is the record's sequence number."""
        if value is None:
            return None
        sequence = None if key is None else bytes(key).decode("ascii", "replace")
        try:
            change = read_record(bytes(value))
            if change.by_ttl and self.items.rules.ttl_deletes == "ignore":
                return None
            row = self.row(change)
            return change.operation, record_key(change.keys), change.time_us, sequence, row, None
        except UnreadableRecord as error:
            return _bad(error.reason)
        except Unlearned:
            return _bad(UNKNOWN_SCHEMA)
        except (NotAnAttribute, Misfit, RecursionError):
            return _bad(MISMATCH)

    def row(self, change: ItemChange) -> tuple[Any, ...]:
        """Return the row of a change: a value for each column. For a delete, only the key has values.

        Raises `Misfit` and `NotAnAttribute`."""
        if sorted(map(column_of, change.keys)) != sorted(self.columns.key):
            raise NotAnAttribute("another key than the table's")
        row: dict[str, Any] = {}
        rest: dict[str, Attribute] = {}
        for name, attribute in self._attributes(change).items():
            place = self.column(name)
            if place is None:
                # Without a column, NULL is like no value: it says nothing about the column's type.
                if self._is_json or attribute_type(attribute) is not None:
                    rest[name] = attribute
            elif (value := self._value(name, attribute, self._types[place])) is not None:
                row[place] = value
        if any(row.get(name) is None for name in self.columns.key):
            raise NotAnAttribute("a key without a value")
        if rest or self._is_json:
            row[self._rest_column(rest)] = json_of_item(rest)
        return tuple(row.get(name) for name in self.columns.names)

    def _attributes(self, change: ItemChange) -> Item:
        return {**(change.image or {}), **change.keys}

    def column(self, attribute: str) -> str | None:
        """Return the attribute's column; None if it is one of those without their own."""
        name = column_of(attribute)
        return name if name in self._types else None

    def _rest_column(self, rest: Item) -> str:
        """Return the column of all other attributes, if these have to be among them."""
        taken = {name.lower() for name in self.columns.names}
        is_full = len(taken) >= MOST_COLUMNS
        has_no_room = all(is_full or column_of(name).lower() in taken for name in rest)
        if not (self._is_json or has_no_room) or self.items.rest not in self._types:
            raise Unlearned
        return self.items.rest

    def _value(self, name: str, attribute: Attribute, data_type: DataType) -> Any:
        declared = self.items.declared(name)
        if declared is not None and declared.name == JSON:
            return plain_json(attribute)
        try:
            return value_of(attribute, data_type)
        except DoesNotFit as error:
            if declared is None:
                raise Unlearned from None
            raise Misfit(f"attribute {name}: {error}") from error

    @property
    def _is_json(self) -> bool:
        return self.items.rules.attributes == "json"

    @cached_property
    def _types(self) -> Mapping[str, DataType]:
        return dict(self.columns.row)


class Misfit(ValueError):
    """A value that does not fit the type that the lake file sets for its attribute."""


class Unlearned(Exception):
    """An attribute, or a kind of value, that the table's columns do not have yet."""


def record_key(keys: Item) -> str:
    """Return the key's attributes as JSON objects without commas, in the order of their names.

    Records name the attributes of a key in any order."""
    objects = (f"{{{json_text(name)}:{plain_json(keys[name])}}}" for name in sorted(keys))
    return " ".join(objects).replace(",", "\\u002c")


def _bad(reason: str) -> Decoded:
    return None, None, None, None, None, reason

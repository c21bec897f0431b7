"""Decode one record to a change, with its item as a row of the table's columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from tributary.contract.column_types import ColumnType

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
        if sorted(map(column_of, change.keys)) != self._key:
            raise NotAnAttribute("another key than the table's")
        row: list[Any] = [None] * len(self.columns.row)
        rest: dict[str, Attribute] = {}
        for name, attribute in self._attributes(change).items():
            place = self._place(name)
            if place is None:
                # Without a column, NULL is like no value: it says nothing about the column's type.
                if self._is_json or attribute_type(attribute) is not None:
                    rest[name] = attribute
            else:
                row[place.number] = place.value(name, attribute)
        if any(row[number] is None for number in self._numbers_of_key):
            raise NotAnAttribute("a key without a value")
        if rest or self._is_json:
            row[self._number_of[self._rest_column(rest)]] = json_of_item(rest)
        return tuple(row)

    def _attributes(self, change: ItemChange) -> Item:
        return {**(change.image or {}), **change.keys}

    def column(self, attribute: str) -> str | None:
        """Return the attribute's column; None if it is one of those without their own."""
        name = column_of(attribute)
        return name if name in self._number_of else None

    def _place(self, attribute: str) -> _Place | None:
        """Return the attribute's place; None if it is one of those without a column of their own."""
        found = self._places.get(attribute)
        if found is None and (number := self._number_of.get(column_of(attribute))) is not None:
            data_type, declared = self.columns.row[number][1], self.items.declared(attribute)
            found = self._places[attribute] = _Place(number, data_type, declared)
        return found

    def _rest_column(self, rest: Item) -> str:
        """Return the column of all other attributes, if these have to be among them."""
        taken = {name.lower() for name in self.columns.names}
        is_full = len(taken) >= MOST_COLUMNS
        has_no_room = all(is_full or column_of(name).lower() in taken for name in rest)
        if not (self._is_json or has_no_room) or self.items.rest not in self._number_of:
            raise Unlearned
        return self.items.rest

    @property
    def _is_json(self) -> bool:
        return self.items.rules.attributes == "json"

    @cached_property
    def _number_of(self) -> Mapping[str, int]:
        """The columns' places in a row, by their names."""
        return {name: number for number, name in enumerate(self.columns.names)}

    @cached_property
    def _key(self) -> Sequence[str]:
        return sorted(self.columns.key)

    @cached_property
    def _numbers_of_key(self) -> Sequence[int]:
        return [self._number_of[name] for name in self.columns.key]

    @cached_property
    def _places(self) -> dict[str, _Place]:
        """The attributes with a column that have come so far. Finding one takes longer than reading it."""
        return {}


@dataclass(frozen=True)
class _Place:
    """The column of an attribute: its number in a row, its type, and the type that the lake file sets."""

    number: int
    data_type: DataType
    declared: ColumnType | None

    def value(self, name: str, attribute: Attribute) -> Any:
        """Return the attribute's value in the column. Raises `Misfit`, `Unlearned` and `NotAnAttribute`."""
        if self.declared is not None and self.declared.name == JSON:
            return plain_json(attribute)
        try:
            return value_of(attribute, self.data_type)
        except DoesNotFit as error:
            if self.declared is None:
                raise Unlearned from None
            raise Misfit(f"attribute {name}: {error}") from error


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

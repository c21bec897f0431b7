"""Columns whose values must not leave the source: left out, masked or hashed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from tributary.contract.column_names import ALLOWED, is_column_name
from tributary.contract.entries import Problem
from tributary.contract.partitions import PartitionColumn

MASK = "*****"
"""What a masked column holds in each row (io.tributary.connect.MaskedColumns)."""

_MAY_BE_MISSING = "?"


class _Policy(Protocol):
    """The entries of a table that concern hidden columns."""

    @property
    def key(self) -> tuple[str, ...] | None: ...
    @property
    def partitions(self) -> tuple[PartitionColumn, ...]: ...
    @property
    def columns(self) -> tuple[tuple[str, object], ...] | None: ...
    @property
    def leave_out(self) -> tuple[str, ...]: ...
    @property
    def mask(self) -> tuple[str, ...]: ...
    @property
    def hash(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class HiddenColumns:
    """The hidden columns of a table, by what is done with them.

    required  the columns that must be in the table
    """

    left_out: frozenset[str] = frozenset()
    masked: frozenset[str] = frozenset()
    hashed: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()

    @classmethod
    def parse(
        cls, left_out: tuple[str, ...], masked: tuple[str, ...], hashed: tuple[str, ...]
    ) -> HiddenColumns:
        """Return the columns that the lists of a lake file name."""
        return cls(
            left_out=frozenset(map(column_in, left_out)),
            masked=frozenset(map(column_in, masked)),
            hashed=frozenset(map(column_in, hashed)),
            required=frozenset(name for name in (*left_out, *masked, *hashed) if column_in(name) == name),
        )

    @property
    def all(self) -> frozenset[str]:
        return self.left_out | self.masked | self.hashed

    @property
    def fingerprint(self) -> str:
        """A text that differs if another column is hidden, or a column in another way."""
        if not self.all:
            return ""
        return json.dumps([sorted(names) for names in (self.left_out, self.masked, self.hashed)])


def column_in(name: str) -> str:
    """Return the column that a name in a list of hidden columns stands for."""
    return name.removesuffix(_MAY_BE_MISSING)


def hidden_problems(entry: str, policy: _Policy) -> Iterator[Problem]:
    """Yield the mistakes in a table's lists of hidden columns. `entry` is the table's name in errors."""
    lists = {"leave_out": policy.leave_out, "mask": policy.mask, "hash": policy.hash}
    places: dict[str, str] = {}
    for where, names in lists.items():
        for column in map(column_in, names):
            if column in places:
                expected = "one place for a column in leave_out, mask and hash"
                found = f"{column}, also in {places[column]}"
                yield Problem(f"{entry}.{where}", "a column that is hidden twice", found, expected)
            places[column] = where
            # The lake never sees the name of a column that is left out.
            if where != "leave_out" and not is_column_name(column):
                what = "a lake table cannot have a column with this name"
                yield Problem(f"{entry}.{where}", what, json.dumps(column, ensure_ascii=False), ALLOWED)
    shown = {
        "key": policy.key or (),
        "partition_by": tuple(dict.fromkeys(each.column for each in policy.partitions)),
    }
    for where, columns in shown.items():
        for column in columns:
            if column in places:
                expected = f"a column that is not in {where}"
                what = f"a column that the lake needs for {where} is hidden"
                yield Problem(f"{entry}.{places[column]}", what, column, expected)
    for column, _ in policy.columns or ():
        if places.get(column) == "leave_out":
            what = "a column that is left out has a type"
            yield Problem(f"{entry}.columns", what, column, "only columns that reach the lake")

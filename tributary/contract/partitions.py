"""The columns that partition a table: the source's, or parts of key columns such as `right(id, 1)`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal, cast, get_args

from pydantic import AfterValidator, BeforeValidator, ValidatorFunctionWrapHandler, WrapValidator

from tributary.contract.entries import as_tuple, expecting

PartFunction = Literal["left", "right", "hash"]

_MOST_CHARACTERS = 16
_MOST_BUCKETS = 1024
_FUNCTIONS = "|".join(get_args(PartFunction))
_CALL = re.compile(rf"({_FUNCTIONS})\(\s*([A-Za-z_][A-Za-z0-9_]*)\s*,\s*([0-9]{{1,9}})\s*\)")
_LIKE_A_CALL = re.compile(r"\s*\w+\(.*\)\s*")
"""Probably a mistake. A column such as `weight (kg)` is not like this."""
_NAME = re.compile(rf"([A-Za-z_][A-Za-z0-9_]*?)__({_FUNCTIONS})_([1-9][0-9]{{0,8}})")
_EXPECTED: Final = (
    f"a column, or a part of a key column: left(column, n) or right(column, n), n from 1 to "
    f"{_MOST_CHARACTERS}, or hash(column, n), n from 2 to {_MOST_BUCKETS}"
)


@dataclass(frozen=True)
class SourceColumn:
    """A column of the source that partitions a table."""

    column: str

    @property
    def name(self) -> str:
        """The column's name in the lake's table."""
        return self.column

    def __str__(self) -> str:
        return self.column


@dataclass(frozen=True)
class KeyPart:
    """A part of a key column that partitions a table. It never changes for a key.

    function  left, right: the first or last characters; hash: the number of a bucket
    number    how many characters, or how many buckets
    """

    function: PartFunction
    column: str
    number: int

    @property
    def name(self) -> str:
        """The name of the additional column in the lake's table.

        It has no underscore at its beginning: Hadoop's readers take a folder with one for a hidden one."""
        return f"{self.column}__{self.function}_{self.number}"

    def __str__(self) -> str:
        return f"{self.function}({self.column}, {self.number})"


PartitionColumn = SourceColumn | KeyPart


def is_hash(column: PartitionColumn) -> bool:
    """Return whether the column tells nothing but a number, which many values share."""
    return isinstance(column, KeyPart) and column.function == "hash"


def parse_partition(text: str) -> PartitionColumn:
    """Return what an entry of `partition_by` means. A text that is not allowed means a column."""
    call = _CALL.fullmatch(text.strip())
    return SourceColumn(text) if call is None else _key_part(call[1], call[2], call[3])


def stored_partition(name: str) -> PartitionColumn:
    """Return what the partition column with this name in a lake's table stands for."""
    found = _NAME.fullmatch(name)
    return SourceColumn(name) if found is None else _key_part(found[2], found[1], found[3])


def _key_part(function: str, column: str, number: str) -> KeyPart:
    return KeyPart(cast(PartFunction, function), column, int(number))


def _checked(text: str) -> str:
    match parse_partition(text):
        case SourceColumn(column):
            if not column or _LIKE_A_CALL.fullmatch(column):
                raise expecting(_EXPECTED)
            # The lake would not know whether the source or itself fills the column.
            if isinstance(part := stored_partition(column), KeyPart):
                raise expecting(f"{part}, if a part of a key column is meant. No column can have this name")
        case KeyPart(function, _, number):
            least, most = (2, _MOST_BUCKETS) if function == "hash" else (1, _MOST_CHARACTERS)
            if not least <= number <= most:
                raise expecting(_EXPECTED)
    return text


def _without_repetition(texts: tuple[str, ...]) -> tuple[str, ...]:
    if not texts or len({parse_partition(text) for text in texts}) < len(texts):
        raise expecting("a list of different columns or parts of key columns, at least one")
    return texts


def _partitions_or_nothing(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    # A list in a file must name at least one column. The empty tuple means that the entry is missing.
    return () if value == () else validate(value)


PartitionsOrNothing = Annotated[
    tuple[Annotated[str, AfterValidator(_checked)], ...],
    BeforeValidator(as_tuple),
    AfterValidator(_without_repetition),
    WrapValidator(_partitions_or_nothing),
]

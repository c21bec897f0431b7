"""What reading the JSON text of a payload needs to know, and the problems that it can have."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import StructType

NOT_UTF8, MISMATCH = "not_utf8", "mismatch"
"""The problems that a payload can have."""


@dataclass(frozen=True)
class ClosedStruct:
    """The struct to check for fields that the type does not declare.

    `field` is the name of the payload's field with the struct, or empty for the whole payload. Fields whose
    whole name matches the regular expression `ignored` do not count."""

    field: str = ""
    ignored: str | None = None


@dataclass(frozen=True)
class ReadableShape:
    """A shape that a payload can have: at least `least` of `names` are at its top."""

    name: str
    wire: StructType
    closed: ClosedStruct
    names: tuple[str, ...]
    least: int

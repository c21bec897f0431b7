"""Successive selects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Selects:
    """A filter for rows with a value in `needed`, and the selects that follow it."""

    needed: str
    steps: tuple[tuple[Column, ...], ...]

    @staticmethod
    def of(_rows: StructType, needed: str, steps: Sequence[Sequence[Column]], /) -> Selects:
        return Selects(needed, tuple(map(tuple, steps)))

    def apply(self, rows: DataFrame) -> DataFrame:
        found = rows.where(rows[self.needed].isNotNull())
        for step in self.steps:
            found = found.select(*step)
        return found

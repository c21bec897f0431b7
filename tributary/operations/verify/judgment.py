"""Tell rows that differ from rows that are on their way, without any assumption about how late the lake is.

The rows of a part are read three times, one after the other: in the lake (`before`), in the database, and in
the lake once it holds all that the database had then (`after`). The lake's `before` holds nothing that came
later than the database's state, and its `after` holds all of that. So a lake row that is the same in both,
from the same event, was the lake's row at the time of the database's state, too. If the database has another
row, or none, the lake is wrong. A row that the lake lacks in `after` is missing if it is in the database
still, and was never written to since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import duckdb
import pyarrow as pa

from connectors.engines.checksums import CHECKSUM, VERSION

Key = tuple[Any, ...]
Kind = Literal["missing", "extra", "repeated", "changed"]


@dataclass(frozen=True)
class Difference:
    """A row that differs. `evidence` is the same at every look, unless one of the sides changes."""

    kind: Kind
    evidence: str


@dataclass(frozen=True)
class Judgment:
    """What three readings of a part tell.

    wrong      rows that differ
    missing    rows that the lake lacks, with their versions in the database: wrong if they have not changed
    in_flight  the number of rows that changed between the readings
    settled    whether each row of `after` equals the database's
    """

    wrong: Mapping[Key, Difference]
    missing: Mapping[Key, str]
    in_flight: int
    settled: bool

    def with_versions(self, versions: Mapping[Key, str]) -> Judgment:
        """Return the judgment once the database was read again, where rows have these versions."""
        still = {
            key: Difference("missing", version)
            for key, version in self.missing.items()
            if versions.get(key) == version
        }
        changed = len(self.missing) - len(still)
        return Judgment({**self.wrong, **still}, {}, self.in_flight + changed, self.settled)


def judge(before: pa.Table, database: pa.Table, after: pa.Table, key: tuple[str, ...]) -> Judgment:
    """Compare three readings of the same part.

    before, after  the key's columns, `checksum` and `sequence` (`PartRows`)
    database       the key's columns, `checksum` and `version`
    """
    with duckdb.connect() as engine:
        for name, rows in (("before_rows", before), ("database_rows", database), ("after_rows", after)):
            engine.register(name, rows)
        found = engine.execute(_query(key)).fetchall()
    size = len(key)
    wrong: dict[Key, Difference] = {}
    missing: dict[Key, str] = {}
    in_flight, settled = 0, True
    for row in found:
        values, (kind, evidence, is_settled) = tuple(row[:size]), row[size:]
        settled = settled and is_settled
        if kind == "missing":
            missing[values] = evidence
        elif kind == "in flight":
            in_flight += 1
        elif kind is not None:
            wrong[values] = Difference(kind, evidence)
    return Judgment(wrong, missing, in_flight, settled)


def versions_of(database: pa.Table, key: tuple[str, ...]) -> dict[Key, str]:
    """Return the version of each row of the database."""
    columns = [database.column(name).to_pylist() for name in (*key, VERSION)]
    return {tuple(row[:-1]): row[-1] for row in zip(*columns, strict=True)}


def _query(key: tuple[str, ...]) -> str:
    names = [_quoted(name) for name in key]
    listed = ", ".join(names)
    keys = ", ".join(
        f"coalesce(d.{name}, a.{name}, b.{name}) AS k{number}" for number, name in enumerate(names)
    )

    def same(left: str, right: str) -> str:
        return " AND ".join(f"{left}.{name} IS NOT DISTINCT FROM {right}.{name}" for name in names)

    def side(table: str, more: str) -> str:
        return (
            f"SELECT {listed}, count(*) AS n, string_agg({CHECKSUM}, ' ' ORDER BY {more}) AS c,"
            f" string_agg(CAST({more} AS VARCHAR), ' ' ORDER BY {more}) AS v FROM {table} GROUP BY {listed}"
        )

    lake_is_same = "b.n IS NOT NULL AND a.v = b.v AND a.c = b.c"
    return f"""
        WITH d AS ({side("database_rows", VERSION)}),
             a AS ({side("after_rows", "sequence")}),
             b AS ({side("before_rows", "sequence")}),
             keys AS (SELECT {listed} FROM d UNION SELECT {listed} FROM a UNION SELECT {listed} FROM b),
             judged AS (
                SELECT {keys},
                    CASE
                        WHEN d.c IS NOT DISTINCT FROM a.c OR d.c IS NOT DISTINCT FROM b.c THEN NULL
                        WHEN a.n IS NULL THEN 'missing'
                        WHEN NOT ({lake_is_same}) THEN 'in flight'
                        WHEN d.n IS NULL THEN 'extra'
                        WHEN a.n > 1 THEN 'repeated'
                        ELSE 'changed'
                    END AS kind,
                    CASE WHEN a.n IS NULL THEN d.v ELSE a.v || ' ' || a.c END AS evidence,
                    d.c IS NOT DISTINCT FROM a.c AS settled
                FROM keys
                LEFT JOIN d ON {same("d", "keys")}
                LEFT JOIN a ON {same("a", "keys")}
                LEFT JOIN b ON {same("b", "keys")}
             )
        SELECT * FROM judged WHERE kind IS NOT NULL OR NOT settled"""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

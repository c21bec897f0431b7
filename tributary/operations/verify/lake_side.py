"""The lake's side of a verification: which rows each part of a table has, and their checksums."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from connectors.engines.checksums import (
    Between,
    Checksum,
    KeyValues,
    Part,
    place_of,
    row_checksum,
    sums_of,
)
from tributary.operations.reconcile.pairing import Pairing

SAMPLE = 100
"""How many keys are drawn for each part whose end is chosen among them."""

_SETTINGS = "SET TimeZone = 'UTC'; SET enable_progress_bar = false"
_SEQUENCE = "_seq"
_DELETED = "_deleted"
_PLACE = "place"
_FOUND_PLACE = "tributary_place_of_part"


class LakeRows(Protocol):
    """One table of the lake. Each call reads its state at that time."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the lake's table."""

    def state(self) -> str:
        """Return a text that changes with each commit that applied events."""

    def read(self, columns: Sequence[str]) -> pa.RecordBatchReader:
        """Return the rows with these columns, batch by batch."""


@dataclass(frozen=True)
class Fingerprint:
    """The number of rows in a part of the lake's table, and a text that changes if one of them does."""

    rows: int
    text: str


def fingerprint_text(rows: int, total: Any) -> str:
    """Return a fingerprint's text, for the number of rows and the sum of DuckDB's hashes of their `_seq`."""
    # DuckDB may hash in another way in another version.
    return f"{duckdb.__version__} {rows} {int(total or 0)}"


NO_ROWS = Fingerprint(0, fingerprint_text(0, 0))


@dataclass(frozen=True)
class LakeSide:
    """A table of the lake, seen in comparable form.

    pairing  the columns that are compared
    """

    rows: LakeRows
    pairing: Pairing

    def fingerprints(self, parts: Sequence[Part]) -> list[Fingerprint]:
        """Return the fingerprint of each part, without a look at the rows' values.

        An event gives a row its place in the order of events, `_seq`. So a part whose places are the same
        has the same rows.
        """
        with self._engine() as engine:
            self._select(engine, self.pairing.key, parts)
            found = engine.execute(
                f"SELECT {_PLACE}, count(*), sum(hash({_SEQUENCE})) FROM selected GROUP BY {_PLACE}"
            ).fetchall()
        by_place = {place: Fingerprint(rows, fingerprint_text(rows, total)) for place, rows, total in found}
        return [by_place.get(place, NO_ROWS) for place in range(len(parts))]

    def rows_of(self, parts: Sequence[Part], wanted: Collection[int]) -> PartRows:
        """Return the checksums of the rows in the parts at these places."""
        engine = duckdb.connect()
        engine.execute(_SETTINGS)
        forms = self.pairing.forms
        self._select(engine, tuple(forms), parts, wanted)
        columns = [(_quoted(name), form.arrow) for name, form in forms.items()]
        keys = "".join(f", {_quoted(name)}" for name in self.pairing.key)
        engine.execute(
            f"CREATE TABLE lake AS SELECT {_PLACE}{keys}, {row_checksum(columns)} AS checksum,"
            f" {_SEQUENCE} AS sequence FROM selected"
        )
        engine.execute("DROP VIEW selected")
        return PartRows(engine, self.pairing.key)

    def full_rows(self, parts: Sequence[Part], wanted: Collection[int]) -> pa.Table:
        """Return the rows of the parts at these places, in comparable form."""
        with self._engine() as engine:
            self._select(engine, tuple(self.pairing.forms), parts, wanted)
            names = ", ".join(_quoted(name) for name in self.pairing.forms)
            found = engine.sql(f"SELECT {names} FROM selected").to_arrow_table()
        return found.cast(self.pairing.schema)

    def ends(
        self, columns: tuple[str, ...], size: int, parts: Sequence[Part] = (), place: int = 0
    ) -> list[KeyValues]:
        """Return where to split the table, or its part at this place, into parts of about this many rows.

        These are the last keys of the new parts, in order, without that of the last one.
        """
        with self._engine() as engine:
            self._select(engine, columns, parts or [Between(columns)], [place])
            names = ", ".join(_quoted(name) for name in columns)
            engine.execute(f"CREATE TABLE keys AS SELECT {names} FROM selected")
            rows = _one(engine, "SELECT count(*) FROM keys")
            number = -(-rows // size)
            if number < 2:
                return []
            engine.execute(
                f"CREATE TABLE drawn AS SELECT DISTINCT {names} FROM keys"
                f" USING SAMPLE reservoir({number * SAMPLE} ROWS) REPEATABLE (1)"
            )
            drawn = _one(engine, "SELECT count(*) FROM drawn")
            found = engine.execute(
                f"SELECT {names} FROM (SELECT {names}, row_number() OVER (ORDER BY {names}) AS n FROM drawn)"
                f" WHERE n % {max(1, drawn // number)} = 0 AND n < {drawn} ORDER BY {names}"
            ).fetchall()
        return [tuple(key) for key in found]

    def count(self) -> int:
        with self._engine() as engine:
            self._select(engine, (), [Between(())])
            return _one(engine, "SELECT count(*) FROM selected")

    def _is_by_number(self, parts: Sequence[Part]) -> bool:
        """Tell whether the parts are ranges of whole numbers that the lake has."""
        first = parts[0]
        if not isinstance(first, Between) or len(parts) < 2 or len(first.columns) != 1:
            return False
        (name,) = first.columns
        is_number = pa.types.is_integer(self.pairing.forms[name].arrow)
        return is_number and name not in self.pairing.unheard

    @contextmanager
    def _engine(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with duckdb.connect() as engine:
            engine.execute(_SETTINGS)
            yield engine

    def _select(
        self,
        engine: duckdb.DuckDBPyConnection,
        columns: Sequence[str],
        parts: Sequence[Part],
        wanted: Collection[int] | None = None,
    ) -> None:
        """Create the view `selected`: the columns in comparable form, `_seq`, and the place of the part.

        It can be read once. Soft-deleted rows are left out.
        """
        key = parts[0].columns if isinstance(parts[0], Between) else parts[0].key
        names = tuple(dict.fromkeys((*key, *columns)))
        forms, unheard = self.pairing.forms, self.pairing.unheard
        present = [name for name in names if name not in unheard]
        own = [name for name in (_SEQUENCE, _DELETED) if name in self.rows.schema.names]
        reader = self.rows.read([*present, *own])
        by_number = self._is_by_number(parts)
        engine.register("incoming", _with_places(reader, key[0], parts) if by_number else reader)
        # A form's expression may name the parameter of a lambda. These names equal none.
        places = {name: f'"column {number}"' for number, name in enumerate(names)}
        kept = [_SEQUENCE, *([_FOUND_PLACE] if by_number else [])]
        stored = ", ".join([f"{_quoted(name)} AS {places[name]}" for name in present] + kept)
        is_stored = f"WHERE NOT {_DELETED}" if _DELETED in own else ""
        comparable = ", ".join(
            [
                f"{forms[name].lake(places[name]) if name in present else 'NULL'}"
                f"::{_sql_type(forms[name].arrow)} AS {_quoted(name)}"
                for name in names
            ]
            + kept
        )
        expressions = {name: (_quoted(name), forms[name].arrow) for name in key}
        place = _FOUND_PLACE if by_number else place_of(parts, expressions)
        chosen = (
            "" if wanted is None else f" WHERE {_PLACE} IN ({', '.join(map(str, sorted(wanted))) or '-1'})"
        )
        engine.execute(
            f"CREATE TEMP VIEW selected AS SELECT * FROM (SELECT *, {place} AS {_PLACE} FROM"
            f" (SELECT {comparable} FROM (SELECT {stored} FROM incoming {is_stored}))){chosen}"
        )


@dataclass
class PartRows:
    """The checksums of the rows in some parts of the lake's table. It has to be closed.

    engine  has them in the table `lake`: place, the key's columns, checksum, sequence
    """

    engine: duckdb.DuckDBPyConnection
    key: tuple[str, ...]

    def checksums(self) -> Mapping[int, Checksum]:
        """Return the checksum of each part that has rows, by its place."""
        found = self.engine.execute(
            f"SELECT place, {sums_of('checksum')} FROM lake GROUP BY place"
        ).fetchall()
        return {place: Checksum.of_sums(*sums) for place, *sums in found}

    def fingerprints(self) -> Mapping[int, Fingerprint]:
        """Return the fingerprint of each part that has rows, as `LakeSide.fingerprints` does."""
        found = self.engine.execute(
            "SELECT place, count(*), sum(hash(sequence)) FROM lake GROUP BY place"
        ).fetchall()
        return {place: Fingerprint(rows, fingerprint_text(rows, total)) for place, rows, total in found}

    def table(self) -> pa.Table:
        """Return the rows."""
        return self.engine.sql("SELECT * FROM lake").to_arrow_table()

    def close(self) -> None:
        self.engine.close()


def _with_places(reader: pa.RecordBatchReader, key: str, parts: Sequence[Part]) -> pa.RecordBatchReader:
    """Return the rows with the places of their parts, which are ranges of this column of whole numbers.

    A search takes the same time for any number of parts. In DuckDB, it would be one of the conditions in
    `place_of` after the other.
    """
    ends = [part.upto[0] for part in parts if isinstance(part, Between) and part.upto]
    search = partial(bisect_left, ends)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            numbers = batch.column(key).cast(pa.int64()).fill_null(0).to_pylist()
            places = pa.array(list(map(search, numbers)), pa.int32())
            yield pa.RecordBatch.from_arrays([*batch.columns, places], schema=schema)

    schema = reader.schema.append(pa.field(_FOUND_PLACE, pa.int32()))
    return pa.RecordBatchReader.from_batches(schema, batches())


def _one(engine: duckdb.DuckDBPyConnection, query: str) -> int:
    row = engine.execute(query).fetchone()
    assert row is not None, "an aggregate has one row"
    return int(row[0])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_type(kind: pa.DataType) -> str:
    """Return DuckDB's name of a form's type."""
    if pa.types.is_list(kind):
        return f"{_sql_type(kind.value_type)}[]"
    for is_kind, name in _SQL_TYPES:
        if is_kind(kind):
            return name
    raise AssertionError(f"no form has the type {kind}")


_SQL_TYPES = (
    (pa.types.is_boolean, "BOOLEAN"),
    (pa.types.is_integer, "BIGINT"),
    (pa.types.is_floating, "DOUBLE"),
    (pa.types.is_string, "VARCHAR"),
    (pa.types.is_binary, "BLOB"),
)

"""A database as a URL names it, and the facts about it from which a first lake file is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SAMPLED_ROWS = 200
SECONDS_FOR_A_SAMPLE = 5


@dataclass(frozen=True)
class DatabaseAddress:
    """A database's URL, without its password.

    port      None: the engine's usual one
    database  empty: the URL names none
    options   the URL's query, such as {"sslmode": "require"}
    """

    scheme: str
    user: str
    host: str
    port: int | None = None
    database: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceEntries:
    """The engine's own entries of `[source.NAME]` and of its connection, in the order of the file."""

    source: Mapping[str, str]
    connection: Mapping[str, str | int]


@dataclass(frozen=True)
class SurveyedTable:
    """One table of the database, except the system's and Tributary's own.

    columns       their types as the engine calls them, in the table's order
    rows          about how many it has; None: nobody knows
    primary_key   its columns; empty: it has none
    unique_keys   the columns of each other unique index over whole columns that are NOT NULL
    has_text      columns whose values can be sampled as text
    """

    schema: str
    table: str
    columns: Mapping[str, str]
    rows: int | None = None
    primary_key: tuple[str, ...] = ()
    unique_keys: tuple[tuple[str, ...], ...] = ()
    has_text: tuple[str, ...] = ()


@dataclass(frozen=True)
class Survey:
    """What a database has.

    server       what people call the server, with its version
    may_prepare  whether the session's user may create what Tributary needs in the database
    """

    server: str
    tables: tuple[SurveyedTable, ...]
    may_prepare: bool = True

"""Write a first lake file from the facts about a database. Nothing here reads or writes anything."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from connectors.engines.survey import DatabaseAddress, SourceEntries, SurveyedTable
from tributary.contract.entries import toml_key
from tributary.contract.lake import Defaults
from tributary.contract.naming import lake_name_problem, source_name_problem
from tributary.contract.patterns import TablePattern
from tributary.contract.table_name import TableName

ROWS_PER_BUCKET = 1_000_000
"""As docs/performance.md says."""

_MOST_BUCKETS = 1024
_WIDTH = 118


@dataclass(frozen=True)
class TableLook:
    """One table, and what is proposed for it.

    key       to write into the file, for a table without a primary key
    problems  why it cannot be taken, each with what to do
    personal  what its columns look like, by their names
    """

    facts: SurveyedTable
    key: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    personal: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> tuple[str, str]:
        return self.facts.schema, self.facts.table

    @property
    def buckets(self) -> int | None:
        """How many buckets to write into the file. None: the default fits."""
        needed = math.ceil((self.facts.rows or 0) / ROWS_PER_BUCKET)
        return min(needed, _MOST_BUCKETS) if needed > Defaults().buckets else None


@dataclass(frozen=True)
class FirstLook:
    """The facts about a database from which a lake file is written.

    lake, source  the names of the lake and of its source
    engine        its key in the lake file
    server        what people call it, with its version
    problems      what concerns the whole server and stops a start, each with what to do
    """

    lake: str
    source: str
    engine: str
    address: DatabaseAddress
    entries: SourceEntries
    server: str
    tables: tuple[TableLook, ...]
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def password_variable(self) -> str:
        """The environment variable that holds the administrator's password."""
        return f"{self.source.upper()}_ADMIN_PASSWORD"

    @property
    def taken(self) -> tuple[TableLook, ...]:
        return tuple(table for table in self.tables if not table.problems)

    @property
    def schemas(self) -> tuple[str, ...]:
        """The schemas to take: those with a table that can be taken, if there is one."""
        return tuple(dict.fromkeys(table.facts.schema for table in self.taken or self.tables))


def lake_name(text: str) -> str:
    """Return a name for a lake that resembles the text."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-").lstrip("0123456789-")[:24].strip("-")
    return "lake" if lake_name_problem(plain) else plain


def source_name(text: str) -> str:
    """Return a name for a source that resembles the text."""
    plain = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_").lstrip("0123456789_")[:24].strip("_")
    return "source" if source_name_problem(plain) else plain


def lake_text(look: FirstLook) -> str:
    """Return the lake file, with comments that say why each entry is there."""
    return "\n".join(
        [
            *_head(look),
            *_source(look),
            *_defaults(),
            *_about_personal_columns(look),
            *_entries_of_tables(look),
            "",
        ]
    )


def housekeeping(table: str) -> str | None:
    """Return what a table with this name holds, if that is hardly of use in a lake."""
    return next((what for name, what in _HOUSEKEEPING.items() if re.fullmatch(name, table.lower())), None)


_HOUSEKEEPING = {
    r"schema_migrations|ar_internal_metadata|alembic_version|(django|knex|_prisma)_migrations|knex_migrations_lock"
    r"|flyway_schema_history|databasechangelog(lock)?|goose_db_version|__efmigrationshistory|migrations": (
        "the versions of the schema, for a tool"
    ),
    r"(\w+_)?sessions?": "sessions of a web application",
    r"(\w+_)?cache(_\w+)?": "a cache",
    r"\w+_(bak|backup|old|tmp|temp|copy)(_?\d+)?|(bak|backup|tmp|temp)_\w+": "a copy or something temporary",
}


def _head(look: FirstLook) -> Iterator[str]:
    place = f"{look.address.host}/{look.address.database}".rstrip("/")
    yield from _comment("The lake file: which databases become a lake, and how their tables are kept.")
    yield from _comment("docs/lake-file.md explains every entry.")
    yield from _comment(
        f"`tributary init` wrote it for {place}, {look.server}: {len(look.tables)} tables, of which the lake "
        f"can take {len(look.taken)}."
    )
    for problem in look.problems:
        yield "#"
        yield from _comment(f"TO DO before the first start: {problem}")
    for remark in look.remarks:
        yield "#"
        yield from _comment(remark)
    yield ""
    yield "[lake]"
    yield f"name = {_text(look.lake)}"
    yield from _comment("It is part of every bucket and topic. Do not change it once the lake has data.")
    yield ""


def _source(look: FirstLook) -> Iterator[str]:
    yield f"[source.{toml_key(look.source)}]"
    yield f"engine = {_text(look.engine)}"
    for name, value in look.entries.source.items():
        yield f"{name} = {_text(value)}"
    yield "tables = ["
    for schema in look.schemas or ("*",):
        yield f"    {_text(f'{_in_pattern(schema)}.*')},"
    for table in look.tables:
        yield from _exclusion(look, table)
    yield "]"
    yield ""
    yield f"[source.{toml_key(look.source)}.connection]"
    yield f"host = {_text(look.address.host)}"
    if look.address.port is not None:
        yield f"port = {look.address.port}"
    yield from _comment("Prepares the database for Debezium, which then logs in as a user of its own.")
    yield f"admin_user = {_text(look.address.user)}"
    yield from _comment("The environment variable with the password. Without it, `tributary start` asks.")
    yield f"admin_password_env = {_text(look.password_variable)}"
    for entry, given in look.entries.connection.items():
        yield f"{entry} = {given if isinstance(given, int) else _text(given)}"
    yield ""


def _exclusion(look: FirstLook, table: TableLook) -> Iterator[str]:
    pattern = _pattern(table)
    if pattern is None or table.facts.schema not in look.schemas:
        return
    line = f"{_text(f'!{pattern}')},"
    if table.problems:
        for problem in table.problems:
            yield from _comment(problem, indent="    ")
        # A name with a wildcard could leave out a table that can be taken.
        is_exact = not any(pattern.matches(*other.name) for other in look.taken)
        yield f"    {'' if is_exact else '# '}{line}"
    elif (what := housekeeping(table.facts.table)) is not None:
        yield from _comment(
            f"Looks like {what}. To leave it out, remove the # of the next line.", indent="    "
        )
        yield f"    # {line}"


def _defaults() -> Iterator[str]:
    defaults = Defaults()
    yield "[defaults]"
    yield from _comment('Fast to write. "copy_on_write" is fast to read.')
    yield f"storage = {_text(defaults.storage)}"
    yield from _comment('"soft" keeps the last values of a deleted row, and sets _deleted.')
    yield f"deletes = {_text(defaults.deletes)}"
    yield from _comment("How far back time travel reaches.")
    yield 'history = "24h"'
    yield from _comment(f"About one per {ROWS_PER_BUCKET:,} rows. It cannot change once a table has data.")
    yield f"buckets = {defaults.buckets}"


def _about_personal_columns(look: FirstLook) -> Iterator[str]:
    if not any(table.personal for table in look.taken):
        return
    yield ""
    yield from _comment(
        "Some columns below look personal. The lake holds their values as the database does, and everybody "
        "who may read the lake can see them. Old values stay in bronze. To hide columns, remove the # in "
        "front of mask, of its lines, and of the table's own line above it, before the first start. `hash` "
        "in place of `mask` keeps values that can be joined, and `leave_out` sends nothing at all: see "
        "docs/privacy.md."
    )


def _entries_of_tables(look: FirstLook) -> Iterator[str]:
    for table in look.taken:
        entries = [*_key_entry(table), *_buckets_entry(table)]
        if not entries and not table.personal:
            continue
        yield ""
        # Without an entry, the section is a part of the proposal.
        yield f"{'' if entries else '# '}[table.{_text(str(TableName(look.source, *table.name)))}]"
        yield from entries
        yield from _proposed_mask(table)


def _key_entry(table: TableLook) -> Iterator[str]:
    if table.key:
        yield from _comment("It has no primary key. These columns of a unique index identify its rows.")
        yield f"key = [{', '.join(map(_text, table.key))}]"


def _buckets_entry(table: TableLook) -> Iterator[str]:
    if table.buckets is not None:
        yield from _comment(f"For about {table.facts.rows:,} rows.")
        yield f"buckets = {table.buckets}"


def _proposed_mask(table: TableLook) -> Iterator[str]:
    """Yield the columns that look personal as an entry in comments. A column of the key cannot be hidden."""
    key = table.key or table.facts.primary_key
    hidden = {column: what for column, what in table.personal.items() if column not in key}
    if hidden:
        yield "# mask = ["
        for column, what in hidden.items():
            yield f"#     {_text(column)},  # {_plain(what)}"
        yield "# ]"
    for column, what in table.personal.items():
        if column in key:
            yield from _comment(f"{column} looks like {what}, but is in the key, so it stays visible.")


def _pattern(table: TableLook) -> TablePattern | None:
    schema, name = map(_in_pattern, table.name)
    return TablePattern(schema, name) if schema and name else None


def _in_pattern(name: str) -> str:
    """Return the name as a part of a pattern: a character that has a meaning there stands for any."""
    plain = re.sub(r"^!", "?", name.replace(".", "?"))
    return plain if plain == plain.strip() else re.sub(r"\s", "?", plain)


def _comment(text: str, indent: str = "") -> Iterator[str]:
    line = f"{indent}#"
    for word in _plain(text).split():
        if len(line) + 1 + len(word) > _WIDTH and line != f"{indent}#":
            yield line
            line = f"{indent}#"
        line += f" {word}"
    yield line


def _plain(text: str) -> str:
    """Return the text without the characters that TOML refuses in a comment."""
    return re.sub(r"[\x00-\x1f\x7f\ud800-\udfff]", " ", text)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

"""Look at a database: which tables the lake can take, with which keys, and what looks personal."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connectors.engines.engine import DatabaseNotReady, LeftOut, RowsUnreadable
from connectors.engines.registry import ENGINES, AnyEngine
from connectors.engines.survey import SurveyedTable
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake, parse_lake
from tributary.contract.remedies import Words
from tributary.contract.table_name import TableName
from tributary.operations.first_look.database_url import DatabaseUrl
from tributary.operations.first_look.lake_text import (
    FirstLook,
    TableLook,
    lake_name,
    lake_text,
    source_name,
)
from tributary.operations.first_look.personal import personal_columns

SECONDS_FOR_SAMPLES = 60.0


class NothingToTake(TributaryError):
    """A database without a table that a lake could take."""


def begin(url: DatabaseUrl, name: str | None = None) -> FirstLook:
    """Return what the URL alone says. `name` is the lake's; None: after the database."""
    address = url.address
    called = address.database or address.host.split(".")[0]
    return FirstLook(
        lake=name or lake_name(called),
        source=source_name(called),
        engine=url.engine,
        address=address,
        entries=ENGINES[url.engine].entries_of(address),
        server=ENGINES[url.engine].title,
        tables=(),
    )


def lake_of(look: FirstLook) -> Lake:
    """Return the lake that is proposed. Raises LakeFileError if the lake's name is not possible."""
    return parse_lake(lake_text(look), where="the proposed lake file")


def look_at(begun: FirstLook, session: Any, words: Words) -> FirstLook:
    """Look at the database in a session of its engine, and propose a lake. Raises NothingToTake.

    words  how to word remedies
    """
    engine, address = ENGINES[begun.engine], begun.address
    found = engine.survey(session, address)
    look = replace(begun, server=found.server, tables=tuple(map(TableLook, found.tables)))
    if not look.tables:
        raise NothingToTake(
            "there are no tables to take",
            where=address.database or address.host,
            expected="a database with at least one table that this user may see",
        )
    look = _with_server(engine, session, look, words, may_prepare=found.may_prepare)
    look = _with_judgement(engine, session, look, words)
    return _with_personal_columns(engine, session, look)


def _with_server(
    engine: AnyEngine, session: Any, look: FirstLook, words: Words, *, may_prepare: bool
) -> FirstLook:
    lake = lake_of(look)
    remarks: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    try:
        remarks = engine.check_server(session, lake, lake.sources[0])
    except DatabaseNotReady as error:
        problems = (error.text(words),)
    if not may_prepare:
        remarks = (
            *remarks,
            f"{look.address.user} may not create the user that Debezium logs in as. Name an administrator as "
            "admin_user. Or remove both admin_ entries and add password_env: then `tributary up` writes the "
            "SQL for an administrator to a file.",
        )
    return replace(look, problems=problems, remarks=remarks)


def _with_judgement(engine: AnyEngine, session: Any, look: FirstLook, words: Words) -> FirstLook:
    """Judge the tables as they are, and those that cannot be taken with each key that could help."""
    try:
        without_help = _left_out(engine, session, look)
    except DatabaseNotReady as error:
        return replace(look, problems=(*look.problems, error.text(words)))
    problems = {name: _problems(one, words) for name, one in without_help.items()}
    keys: dict[tuple[str, str], tuple[str, ...]] = {}
    candidates = {
        table.name: list(table.facts.unique_keys)
        for table in look.tables
        if table.name in problems and not table.facts.primary_key
    }
    while any(candidates.values()):
        tried = {name: left.pop(0) for name, left in candidates.items() if left}
        with_keys = replace(
            look, tables=tuple(replace(table, key=tried.get(table.name, ())) for table in look.tables)
        )
        refused = _left_out(engine, session, with_keys)
        for name, key in tried.items():
            if name not in refused:
                keys[name] = key
                candidates.pop(name)
            else:
                problems[name] = _with_key(_problems(refused[name], words), refused[name].table, key)
    return replace(
        look,
        tables=tuple(
            replace(table, key=keys[table.name])
            if table.name in keys
            else replace(table, problems=problems.get(table.name, ()))
            for table in look.tables
        ),
    )


def _left_out(engine: AnyEngine, session: Any, look: FirstLook) -> Mapping[tuple[str, str], LeftOut]:
    lake = lake_of(look)
    found = engine.check_tables(session, lake, lake.sources[0])
    return {(one.table.schema, one.table.table): one for one in found.left_out}


def _problems(one: LeftOut, words: Words) -> tuple[str, ...]:
    return tuple(problem.text(words).removeprefix(f"table {one.table}: ") for problem in one.problems)


def _with_key(problems: tuple[str, ...], table: TableName, key: tuple[str, ...]) -> tuple[str, ...]:
    """Return the problems of a table that a key alone does not solve, but that needs one, too."""
    *others, last = problems
    columns = ", ".join(f'"{column}"' for column in key)
    return (*others, f'{last} Then also write [table."{table}"] with key = [{columns}].')


def _with_personal_columns(engine: AnyEngine, session: Any, look: FirstLook) -> FirstLook:
    deadline = time.monotonic() + SECONDS_FOR_SAMPLES
    is_complete = True

    def looked_at(table: TableLook) -> TableLook:
        nonlocal is_complete
        facts, rows = table.facts, []
        if table.problems:
            return table
        if time.monotonic() >= deadline:
            is_complete = False
        elif facts.has_text:
            rows = _sample(engine, session, facts)
        return replace(table, personal=personal_columns(facts.columns, facts.has_text, rows))

    tables = tuple(map(looked_at, look.tables))
    remark = (
        f"After {SECONDS_FOR_SAMPLES:.0f} seconds, the rest of the columns are judged by their names only."
    )
    return replace(look, tables=tables, remarks=look.remarks if is_complete else (*look.remarks, remark))


def _sample(engine: AnyEngine, session: Any, facts: SurveyedTable) -> list[Any]:
    try:
        return list(engine.sample(session, facts, facts.has_text))
    except RowsUnreadable:
        return []  # The columns' names still tell something.

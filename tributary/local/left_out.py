"""The record, in the state folder, of the tables that the last start left out, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pydantic import BaseModel, ConfigDict, TypeAdapter

from connectors.engines.engine import LeftOut
from tributary.contract.lake import Lake
from tributary.contract.remedies import Words, in_words, said_once
from tributary.contract.source import Source
from tributary.contract.table_name import TableName
from tributary.local.state import StateFolder, write_private_file


class LeftOutTable(BaseModel):
    """A table that is left out: one reason and one remedy for each problem.

    is_gone  it was left out and is no longer there. The connector must not read its changes from before
    """

    model_config = ConfigDict(frozen=True)

    table: str
    reasons: tuple[str, ...]
    remedies: tuple[str, ...]
    is_gone: bool = False

    @property
    def name(self) -> TableName:
        return TableName.parse(self.table)


_TABLES = TypeAdapter(tuple[LeftOutTable, ...])


def as_records(tables: Iterable[LeftOut], words: Words) -> tuple[LeftOutTable, ...]:
    """Return the tables with their problems in the words of a surface, ordered by name."""
    return tuple(
        LeftOutTable(
            table=str(each.table),
            reasons=tuple(problem.reason for problem in each.problems),
            remedies=said_once([in_words(problem.remedies, words) for problem in each.problems]),
        )
        for each in sorted(tables, key=lambda each: each.table)
    )


def as_gone(tables: Iterable[TableName]) -> tuple[LeftOutTable, ...]:
    """Return the records of tables that were left out and are gone, ordered by name."""
    return tuple(
        LeftOutTable(table=str(table), reasons=(), remedies=(), is_gone=True) for table in sorted(tables)
    )


def write_left_out(state: StateFolder, tables: Collection[LeftOutTable]) -> None:
    """Replace the record."""
    draft = state.left_out_file.with_suffix(".draft")
    write_private_file(draft, _TABLES.dump_json(tuple(tables), indent=2).decode())
    draft.replace(state.left_out_file)


def replace_left_out(
    state: StateFolder, source: Source, tables: Iterable[LeftOut], gone: Iterable[TableName], words: Words
) -> None:
    """Replace the part of the record that is about one source."""
    of_others = [one for one in _read(state) if one.name.source != source.name]
    write_left_out(state, [*of_others, *as_records(tables, words), *as_gone(gone)])


def read_left_out(state: StateFolder, lake: Lake) -> Mapping[TableName, LeftOutTable]:
    """Read the tables that the last start left out, that were there, and that the lake file still wants."""
    sources = {source.name: source for source in lake.sources}
    return {
        each.name: each
        for each in _read(state)
        if not each.is_gone
        and (source := sources.get(each.name.source)) is not None
        and source.patterns.would_match(each.name.schema, each.name.table)
    }


def read_ever_left_out(state: StateFolder, source: Source) -> frozenset[TableName]:
    """Read the tables of a source that the last start left out, also those that were gone by then."""
    return frozenset(one.name for one in _read(state) if one.name.source == source.name)


def _read(state: StateFolder) -> tuple[LeftOutTable, ...]:
    try:
        return _TABLES.validate_json(state.left_out_file.read_bytes())
    except FileNotFoundError:
        return ()

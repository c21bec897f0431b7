"""Keep the records of online snapshots, and the definitions of the source's tables, next to the lake."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from connectors.engines.definitions import TableDefinition
from tributary.contract.lake import Lake
from tributary.contract.naming import LakeNames
from tributary.contract.online_snapshot import RECORDS_FOLDER, Record, from_json, record_name, to_json
from tributary.contract.source_look import look_name
from tributary.contract.table_name import TableName
from tributary.operations.text_files import delete_file, read_text, read_texts, write_text

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem


@dataclass(frozen=True)
class LeftOutNote:
    """Why a table is left out.

    reasons           one for each problem
    remedies          one for each problem, empty if there is nothing to do about it
    awaits_connector  the lake can take the table, and only its connector does not read it yet
    """

    reasons: tuple[str, ...]
    remedies: tuple[str, ...] = ()
    awaits_connector: bool = False


@dataclass(frozen=True)
class Look:
    """What was found at a look at a source's catalog.

    tables     the tables that the lake takes
    gone       the tables that were followed before, and that were not there
    left_out   the tables that the lake cannot take
    held_back  the tables of which no lake table may be made: those left out, as long as the lake has none,
               and those that were, until they have been read again
    """

    tables: Mapping[TableName, TableDefinition]
    gone: frozenset[TableName] = frozenset()
    left_out: Mapping[TableName, LeftOutNote] = field(default_factory=dict)
    held_back: frozenset[TableName] = frozenset()

    @classmethod
    def from_json(cls, text: str) -> Look | None:
        """Parse a look. Return None for a text that is none."""
        try:
            found = json.loads(text)
            tables = found["tables"].items()
            return cls(
                {TableName.parse(name): TableDefinition.from_json(one) for name, one in tables},
                frozenset(map(TableName.parse, found["gone"])),
                {TableName.parse(name): _note(one) for name, one in found.get("left_out", {}).items()},
                frozenset(map(TableName.parse, found.get("held_back", ()))),
            )
        except (KeyError, TypeError, ValueError):
            return None


def _note(found: Mapping[str, Any]) -> LeftOutNote:
    awaits_connector = bool(found.get("awaits_connector"))
    return LeftOutNote(tuple(found["reasons"]), tuple(found["remedies"]), awaits_connector)


@dataclass(frozen=True)
class RecordFiles:
    """The files below `location`, the quarantine bucket, or bucket and prefix."""

    filesystem: S3FileSystem
    names: LakeNames
    location: str

    def read(self) -> Mapping[TableName, Record]:
        """Return the records of all tables. One that cannot be parsed is left out."""
        records = map(from_json, read_texts(self.filesystem, f"{self.location}/{RECORDS_FOLDER}"))
        return {record.request.table: record for record in records if record is not None}

    def write(self, record: Record) -> None:
        write_text(self.filesystem, self._path(record.request.table), to_json(record))

    def remove(self, table: TableName) -> None:
        """Remove a table's record, if there is one."""
        delete_file(self.filesystem, self._path(table))

    def forget(self, source: str) -> None:
        """Remove the records and definitions of a source's tables before it is read from the start."""
        for table in self.read():
            if table.source == source:
                self.remove(table)
        delete_file(self.filesystem, self._definitions(source))

    def read_look(self, source: str) -> Look | None:
        """Return the last look at the source; None if there was none."""
        text = read_text(self.filesystem, self._definitions(source))
        return None if text is None else Look.from_json(text)

    def read_gone(self, lake: Lake) -> frozenset[TableName]:
        """Return the tables that were followed and that their source did not have at the last look."""
        return gone_in(self.read_look(source.name) for source in lake.sources)

    def read_left_out(self, lake: Lake) -> Mapping[TableName, LeftOutNote]:
        """Return the tables that the last looks have left out, and that the lake file still wants."""
        return left_out_of(lake, {one.name: self.read_look(one.name) for one in lake.connected_sources})

    def write_look(self, source: str, look: Look) -> None:
        found = {
            "source": source,
            "tables": {str(name): definition.to_json() for name, definition in look.tables.items()},
            "gone": sorted(map(str, look.gone)),
            "left_out": {str(name): asdict(note) for name, note in look.left_out.items()},
            "held_back": sorted(map(str, look.held_back)),
        }
        write_text(self.filesystem, self._definitions(source), json.dumps(found, indent=1))

    def _path(self, table: TableName) -> str:
        return f"{self.location}/{record_name(self.names.table_path(table))}"

    def _definitions(self, source: str) -> str:
        return f"{self.location}/{look_name(source)}"


def gone_in(looks: Iterable[Look | None]) -> frozenset[TableName]:
    """Return the tables that were followed and that the looks did not find."""
    return frozenset[TableName]().union(*(look.gone for look in looks if look is not None))


def left_out_of(lake: Lake, looks: Mapping[str, Look | None]) -> Mapping[TableName, LeftOutNote]:
    """Return the tables that the looks at the sources have left out, and that the lake file still wants."""
    return {
        table: note
        for source, look in looks.items()
        if look is not None
        for table, note in look.left_out.items()
        if lake.source(source).patterns.would_match(table.schema, table.table)
    }


def read_known(files: RecordFiles, source: str) -> Mapping[TableName, TableDefinition]:
    """Return the tables that the last look at the source has found, with their definitions."""
    look = files.read_look(source)
    return {} if look is None else look.tables


def read_reasons(files: RecordFiles, lake: Lake) -> Mapping[TableName, str]:
    """Return why the last looks have left tables out."""
    return {table: " ".join(note.reasons) for table, note in files.read_left_out(lake).items()}

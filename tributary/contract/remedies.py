"""Remedies: what a person can do about an error, as values that each surface words for its own reader.

The command, AWS and the console each name their own commands. So an error carries a `Remedy`, not prose that
names commands. Outcome files and reports store remedies as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, assert_never

Runbook = Literal["event too large", "older state", "snapshot", "topic recreated"]
"""A procedure in the documentation. Each surface has its own page and place for it."""


@dataclass(frozen=True)
class Advice:
    """One-off advice, in the same words for every reader: one sentence or more, without a command."""

    text: str


@dataclass(frozen=True)
class BringUp:
    """Start what the lake runs on."""


@dataclass(frozen=True)
class CheckStatus:
    """Check that everything runs without errors."""


@dataclass(frozen=True)
class EditLakeFile:
    """Change the lake file; `change` is the rest of a sentence that begins "In the lake file, "."""

    change: str


@dataclass(frozen=True)
class Ingest:
    """Bring a table, or the whole lake, up to date. `events_from` is None for the default."""

    events_from: Literal["kafka", "bronze"] | None = None
    table: str | None = None


@dataclass(frozen=True)
class ListTables:
    """List the tables of the lake."""


@dataclass(frozen=True)
class NameLakeFile:
    """Say where the lake file is."""


@dataclass(frozen=True)
class OpenEpoch:
    """Continue at the beginning of a topic that was deleted and created again."""

    table: str | None = None


@dataclass(frozen=True)
class ReadRunbook:
    """Follow a procedure in the documentation."""

    runbook: Runbook


@dataclass(frozen=True)
class RebuildTable:
    """Rebuild a table from its events."""

    table: str | None = None


@dataclass(frozen=True)
class ShowQuarantine:
    """List the events in quarantine, with the reasons."""

    table: str | None = None


@dataclass(frozen=True)
class StopRun:
    """Stop the run that is writing the tables."""


@dataclass(frozen=True)
class TakeSnapshot:
    """Have Debezium take a new snapshot of a source."""

    source: str | None = None


Remedy = (
    Advice
    | BringUp
    | CheckStatus
    | EditLakeFile
    | Ingest
    | ListTables
    | NameLakeFile
    | OpenEpoch
    | ReadRunbook
    | RebuildTable
    | ShowQuarantine
    | StopRun
    | TakeSnapshot
)
Remedies = tuple[Remedy, ...]
RemedyOrText = Remedy | str | Iterable[Remedy | str] | None
"""The remedies that an error accepts. A text stands for `Advice`."""

Words = Callable[[Remedy], str]
"""A surface's wording: one or more sentences for each remedy."""

KINDS: Mapping[str, type[Remedy]] = {
    "advice": Advice,
    "bring_up": BringUp,
    "check_status": CheckStatus,
    "edit_lake_file": EditLakeFile,
    "ingest": Ingest,
    "list_tables": ListTables,
    "name_lake_file": NameLakeFile,
    "open_epoch": OpenEpoch,
    "read_runbook": ReadRunbook,
    "rebuild_table": RebuildTable,
    "show_quarantine": ShowQuarantine,
    "stop_run": StopRun,
    "take_snapshot": TakeSnapshot,
}
"""The kinds of remedies, by their names in JSON."""
_NAMES = {kind: name for name, kind in KINDS.items()}


def remedies_of(given: RemedyOrText) -> Remedies:
    """Return the remedies of an error, in their order."""
    match given:
        case None:
            return ()
        case str():
            return (Advice(given),)
        case Iterable():
            return tuple(one for each in given for one in remedies_of(each))
        case _:
            return (given,)


def remedies_for_table(remedies: Remedies, table: str) -> Remedies:
    """Return the remedies; those without a table get this one, written source.schema.table."""
    return tuple(_for_table(remedy, table) for remedy in remedies)


def remedies_as_json(remedies: Remedies) -> list[dict[str, Any]]:
    """Return JSON values from which `remedies_from_json` builds the same remedies."""
    return [{"kind": _NAMES[type(remedy)], **asdict(remedy)} for remedy in remedies]


def remedies_from_json(found: Iterable[Mapping[str, Any]]) -> Remedies:
    """Return the remedies. Skip kinds that only another version of Tributary knows."""
    remedies = []
    for one in found:
        fields = {name: value for name, value in one.items() if name != "kind"}
        if (kind := KINDS.get(one.get("kind", ""))) and fields.keys() == kind.__dataclass_fields__.keys():
            remedies.append(kind(**fields))
    return tuple(remedies)


def said_once(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the remedies of several problems, with an empty text in place of each that comes again later."""
    return tuple("" if text in texts[place + 1 :] else text for place, text in enumerate(texts))


def in_words(remedies: Iterable[Remedy], words: Words) -> str:
    """Return the remedies as one paragraph in the words of a surface."""
    return " ".join(as_sentence(words(remedy)) for remedy in remedies)


def as_sentence(text: str) -> str:
    """Return the text on one line, with a full stop unless it ends in a mark of its own."""
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."


def plain_words(remedy: Remedy) -> str:
    """Return a sentence that names no command: for logs, and for Python, which have no commands."""
    match remedy:
        case Advice(text):
            return text
        case BringUp():
            return "Start the pipeline."
        case CheckStatus():
            return "Check the status of the pipeline."
        case EditLakeFile(change):
            return f"In the lake file, {change}."
        case Ingest(None, _):
            return "Bring the lake up to date."
        case Ingest(events_from, _):
            return f"Bring the lake up to date from {events_from}."
        case ListTables():
            return "List the tables of the lake."
        case NameLakeFile():
            return "Give its path, or change to the folder with lake.toml."
        case OpenEpoch():
            return "Continue at the beginning of the new topic."
        case ReadRunbook(runbook):
            return f'See the documentation about "{runbook}".'
        case RebuildTable():
            return "Rebuild the table."
        case ShowQuarantine():
            return "List the events in quarantine, with the reasons."
        case StopRun():
            return "Stop the run that writes the tables."
        case TakeSnapshot():
            return "Take a new snapshot of the source."
        case _:
            assert_never(remedy)


def _for_table(remedy: Remedy, table: str) -> Remedy:
    match remedy:
        case Ingest(table=None) | OpenEpoch(None) | RebuildTable(None) | ShowQuarantine(None):
            return replace(remedy, table=table)
        case TakeSnapshot(None):
            # The name of a source holds neither dots nor quotes.
            return TakeSnapshot(table.partition(".")[0])
        case _:
            return remedy

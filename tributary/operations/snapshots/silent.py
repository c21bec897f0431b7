"""Notice what changes rows of a source without an event, and ask for snapshots of the tables it concerns."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from connectors.engines.debezium_options import reads
from connectors.engines.definitions import SilentChanges, TableDefinition, silent_changes
from connectors.engines.engine import Checked, DatabaseNotReady, LeftOut
from tributary.contract.errors import TributaryError
from tributary.contract.online_snapshot import Noticed, Read, Reading, Record, Request, Requested
from tributary.contract.remedies import BringUp, in_words, plain_words, remedies_of, said_once
from tributary.contract.table_name import TableName
from tributary.operations.reconcile.proof import HIDDEN, SourceLink
from tributary.operations.snapshots.record_files import LeftOutNote, Look, RecordFiles

ADDED = SilentChanges(("some of its rows can have come before it was followed",))
BACK = SilentChanges(("it was not in its source for a while",))
TAKEN = SilentChanges(("it was left out until now",))
UNREAD = LeftOutNote(
    ("its connector does not read it yet.",),
    (in_words(remedies_of([BringUp()]), plain_words),),
    awaits_connector=True,
)


@dataclass(frozen=True)
class Finding:
    """What a look has found.

    requests  the snapshots that were asked for
    left_out  new tables that the lake cannot take
    unread    tables that the lake can take, and that their connector does not read
    unseen    tables that the connector's user no longer sees, and that may still be there
    elsewhere tables that another connector sends, from where nobody looks
    """

    requests: tuple[Request, ...] = ()
    left_out: Mapping[TableName, LeftOutNote] = field(default_factory=dict)
    unread: frozenset[TableName] = frozenset()
    unseen: frozenset[TableName] = frozenset()
    elsewhere: frozenset[TableName] = frozenset()


def notice(
    link: SourceLink,
    session: Any,
    files: RecordFiles,
    followed: Collection[TableName],
    stored: Collection[TableName] = (),
) -> Finding:
    """Compare the source's tables with the last look, judge the new ones, and ask for snapshots.

    The first look asks for none. A new table that cannot be taken is left out until a later look finds it
    mended. So is one that its connector does not read yet: it was a partition or was left out at the last
    start, or the database has to be prepared for it. A table that is left out counts as not there. The
    records of tables that are not there are removed. An unseen table stays as it was.

    A table in `followed`, which has a topic or is in the lake, is an orphan if it is gone. One that comes
    back is read again. Routed events have a topic but no table of their own. `stored` are the tables in the
    lake. `session` is the connector's user's. Raises the errors of the database and of S3."""
    source, before = link.source.name, files.read_look(link.source.name)
    earlier = Look({}) if before is None else before
    defined = link.engine.read_definitions(session, link.lake, link.source)
    at_start = {t: LeftOutNote((reason,), ("",)) for t, reason in link.left_out.items() if t.source == source}
    new = defined.keys() - earlier.tables.keys()
    checked = _checked(link, session, new)
    unfit = _notes(checked.left_out, new)
    fit = new - unfit.keys()
    unread = _unread(link, fit) or _unsent(link, session, fit, checked) or _mended(link, fit, before)
    left_out = {**at_start, **unfit, **unread}
    now = {table: definition for table, definition in defined.items() if table not in left_out}
    missing = {*earlier.tables, *earlier.left_out, *followed} - defined.keys() - left_out.keys()
    unseen = link.unseen(session, {table: earlier.tables.get(table) for table in missing})
    now |= {table: earlier.tables[table] for table in unseen.keys() & earlier.tables.keys()}
    left_out |= {table: earlier.left_out[table] for table in unseen.keys() & earlier.left_out.keys()}
    requests = () if before is None else tuple(_requests(link, session, before, now, followed))
    records = dict(files.read())
    for table in [one for one in records if one.source == source and one not in now]:
        files.remove(table)
        del records[table]
    for request in requests:
        known = records.get(request.table)
        # A reading that is under way finds the table's new definition by itself.
        if not isinstance(known, Reading):
            record = _record(link, request if known is None else _together(known.request, request))
            files.write(record)
            records[request.table] = record
    gone = frozenset(
        table
        for table in followed
        if table.source == source
        and table not in now
        and table not in left_out
        and table not in unseen
        and not link.source.routes_to(table.schema)
    )
    held_back = frozenset(
        table
        for table in {*left_out, *earlier.held_back}
        if table not in stored and _is_held_back(table, left_out, gone, records.get(table))
    )
    if before != (look := Look(now, gone, left_out, held_back)):
        files.write_look(source, look)
    told_before = at_start.keys() | earlier.left_out.keys()
    told = {table: note for table, note in unfit.items() if table not in told_before}
    hidden = frozenset(table for table, why in unseen.items() if why == HIDDEN)
    return Finding(requests, told, frozenset(unread), hidden, frozenset(unseen) - hidden)


def _checked(link: SourceLink, session: Any, new: Collection[TableName]) -> Checked:
    """Check the source's tables. Without new ones, this costs nothing."""
    return link.engine.check_later_tables(session, link.lake, link.source) if new else Checked()


def _notes(left_out: Iterable[LeftOut], new: Collection[TableName]) -> Mapping[TableName, LeftOutNote]:
    """Return the new tables that the lake cannot take."""
    return {one.table: _note(*one.problems) for one in left_out if one.table in new}


def _note(*problems: TributaryError) -> LeftOutNote:
    return LeftOutNote(
        tuple(problem.reason for problem in problems),
        said_once([in_words(problem.remedies, plain_words) for problem in problems]),
    )


def _unread(link: SourceLink, new: Collection[TableName]) -> Mapping[TableName, LeftOutNote]:
    """Return the new tables that the connector's config leaves out. Without new ones, this costs nothing."""
    config = link.read_config() if new else None
    return {} if config is None else {table: UNREAD for table in new if not reads(config, table)}


def _unsent(
    link: SourceLink, session: Any, new: Collection[TableName], checked: Checked
) -> Mapping[TableName, LeftOutNote]:
    """Return the new tables, if the database is not prepared for one of them, and that can be mended here."""
    if not new or link.renew is None:
        return {}
    try:
        link.engine.check_prepared(session, link.lake, link.source, checked.untaken)
    except DatabaseNotReady as error:
        why = _note(error)
        note = replace(UNREAD, reasons=(*UNREAD.reasons, *why.reasons), remedies=("", *why.remedies))
        return dict.fromkeys(new, note)
    return {}


def _mended(
    link: SourceLink, new: Collection[TableName], before: Look | None
) -> Mapping[TableName, LeftOutNote]:
    """Return the new tables that the last look could not take, if their connector can be started again.

    Until then it may know such a table as that was, for example without its key, and would not read it."""
    if before is None or link.renew is None:
        return {}
    notes = {table: before.left_out[table] for table in new if table in before.left_out}
    return {table: UNREAD for table, note in notes.items() if not note.awaits_connector}


def _is_held_back(
    table: TableName,
    left_out: Collection[TableName],
    gone: Collection[TableName],
    record: Record | None,
) -> bool:
    """Return whether the lake must not have the table yet.

    A table that was left out has earlier events in its topic, which it cannot begin with."""
    is_unread = record is not None and not isinstance(record, Read)
    return table in left_out or table in gone or is_unread


def ask(files: RecordFiles, tables: Collection[TableName], reason: str) -> None:
    """Ask for snapshots of these tables, whatever was asked for before."""
    for table in tables:
        files.write(Requested(_request(table, SilentChanges((reason,)))))


def _record(link: SourceLink, request: Request) -> Record:
    policy = link.lake.policy(request.table)
    return Requested(request) if policy.repair == "automatic" else Noticed(request)


def _together(earlier: Request, later: Request) -> Request:
    """Return one request for the reasons of both."""
    reasons = tuple(dict.fromkeys((*earlier.reasons, *later.reasons)))
    conditions = (earlier.condition, later.condition)
    both = None if None in conditions else " OR ".join(filter(None, dict.fromkeys(conditions)))
    return replace(later, reasons=reasons, condition=both)


def _requests(
    link: SourceLink,
    session: Any,
    before: Look,
    now: Mapping[TableName, TableDefinition],
    followed: Collection[TableName],
) -> Iterator[Request]:
    for table, definition in sorted(now.items()):
        if table in before.tables:
            changes = silent_changes(before.tables[table], definition)
        elif table in before.left_out or table in before.held_back:
            # Its topic can have events from before, and lack others.
            has_any = table in followed or link.engine.has_rows(session, table)
            changes = TAKEN if has_any else None
        elif table in before.gone:
            # The lake can still have rows of the former table, of which nobody has said that they are gone.
            changes = BACK
        else:
            is_unseen = not definition.followed and link.engine.has_rows(session, table)
            changes = ADDED if is_unseen else None
        if changes is not None:
            yield _request(table, changes)


def _request(table: TableName, changes: SilentChanges) -> Request:
    return Request(str(uuid4()), table, changes.reasons, time.time_ns() // 1000, changes.condition)

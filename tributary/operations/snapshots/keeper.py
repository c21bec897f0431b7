"""Drive the online snapshots of a lake: one process at a time does it, and any other can watch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from tributary.api.tables import read_table_folders
from tributary.contract.online_snapshot import Read, Reading, Record, Request, Requested
from tributary.contract.table_name import TableName
from tributary.operations.keeping import in_a_thread
from tributary.operations.known_tables import known_tables
from tributary.operations.orphan_files import OrphanFiles, why_orphan
from tributary.operations.reconcile.barrier import Patience
from tributary.operations.reconcile.proof import SourceLink
from tributary.operations.snapshots.advance import advance
from tributary.operations.snapshots.record_files import RecordFiles
from tributary.operations.snapshots.renewals import Renewals
from tributary.operations.snapshots.silent import Finding, notice
from tributary.operations.sourced_lake import Failures, OpenedLake, SourcedLake, passing_errors

SECONDS_BETWEEN_STEPS = 1.0
SECONDS_BETWEEN_LOOKS = 30.0
"""How long to wait before the next look at the catalog of each source."""

SECONDS_BETWEEN_GLANCES = 2.0
"""How long to wait before asking Kafka again for tables that no look has met."""

SECONDS_FOR_KAFKA = 300.0
"""How long one step may wait until Kafka holds what a source has committed."""


def record_files(opened: OpenedLake) -> RecordFiles:
    """Return the lake's records. Raises PipelineDown."""
    lake = opened.open_lake
    return RecordFiles(lake.files.filesystem, lake.lake.names, lake.quarantine)


def notice_changes(lake: SourcedLake, tell: Callable[[str], None] = lambda _: None) -> tuple[Request, ...]:
    """Look at the catalogs of all sources once (`notice`). A source that is away does not stop the others.

    Decisions about orphans that the lake follows again are forgotten. `tell` gets what was found to be read
    again or left out. Raises the errors of the databases, Kafka and S3."""
    return _noticed(lake, known_tables(lake), Renewals(tell, passing_errors(lake)))


def _noticed(lake: SourcedLake, known: Collection[TableName], renewals: Renewals) -> tuple[Request, ...]:
    files, decisions = record_files(lake), _orphan_files(lake)
    found: list[Request] = []
    unseen: set[TableName] = set()
    decided = decisions.read()
    # Before the looks: a table that is created later is no orphan.
    folders = read_table_folders(files.filesystem, files.names, lake.open_lake.silver)
    stored = {place.name for place in folders}
    followed = {*known, *stored, *decided}
    failures = Failures(lake)
    for link in lake.links():
        with failures.one_source():
            finding = _look_at(link, files, followed, stored)
            if renewals.renew(link, finding.unread):
                # The renewal has replaced the list of what the start leaves out.
                (renewed,) = (one for one in lake.links() if one.source.name == link.source.name)
                finding = _together(finding, _look_at(renewed, files, followed, stored))
            found += finding.requests
            for table, note in finding.left_out.items():
                reasons = (reason.removeprefix(f"table {table}: ") for reason in note.reasons)
                renewals.tell(f"{table} is left out: {' '.join(filter(None, (*reasons, *note.remedies)))}")
            unseen |= finding.unseen | finding.elsewhere
            if finding.unseen:
                renewals.tell(_blindness(finding.unseen))
    for request in found:
        renewals.tell(described(request))
    gone = files.read_gone(lake.lake)
    for table in decided.keys() - unseen:
        if why_orphan(lake.lake, gone, table) is None:
            decisions.forget(table)
    failures.raise_all()
    return tuple(found)


def _look_at(
    link: SourceLink, files: RecordFiles, followed: Collection[TableName], stored: Collection[TableName]
) -> Finding:
    with link.connect() as session:
        return notice(link, session, files, followed, stored)


def _blindness(unseen: Collection[TableName]) -> str:
    """Return what a person should know about tables that the connector's user may no longer see."""
    first, *others = sorted(map(str, unseen))
    more = f" and {len(others):,} more" if others else ""
    return (
        f"The connector's user may no longer read {first}{more}, so changes without an event go unnoticed. "
        "Grant it the right again, or bring the pipeline up with an administrator's login, which does so."
    )


def _together(earlier: Finding, later: Finding) -> Finding:
    """Return the findings of two looks at a source."""
    return replace(
        later,
        requests=(*earlier.requests, *later.requests),
        left_out={**earlier.left_out, **later.left_out},
    )


def _orphan_files(opened: OpenedLake) -> OrphanFiles:
    lake = opened.open_lake
    return OrphanFiles(lake.files.filesystem, lake.lake.names, lake.quarantine)


def is_unread(record: Record) -> bool:
    """Return whether the connector has yet to read the table."""
    return isinstance(record, Requested | Reading)


@dataclass
class SnapshotKeeper:
    """Takes all snapshots of a lake further. `tell` gets what a person should know."""

    lake: SourcedLake
    tell: Callable[[str], None]
    stop: threading.Event = field(default_factory=threading.Event)
    _met: frozenset[TableName] = field(default=frozenset(), init=False)
    _renewals: Renewals = field(init=False)
    _next_look: float = field(default=0.0, init=False)
    _next_glance: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._renewals = Renewals(self.tell, passing_errors(self.lake))

    def step(self) -> Mapping[TableName, Record]:
        """Take each snapshot as far as it can get now, and return the records of all tables.

        If another process does so, only read what it has recorded. A source that is away does not stop the
        others. Raises the errors of the databases, Kafka and S3."""
        files = record_files(self.lake)
        records = dict(files.read())
        if not _sources_with_open(records):
            return records
        with self.lake.alone("snapshots") as is_alone:
            records = dict(files.read())
            open_in = _sources_with_open(records)
            failures = Failures(self.lake)
            for link in self._links(open_in) if is_alone else ():
                of_source = {t: r for t, r in records.items() if t.source == link.source.name}
                with failures.one_source(), link.connect() as session:
                    patience = Patience.of(SECONDS_FOR_KAFKA, stop=self.stop)
                    advanced = advance(link, session, files, of_source.values(), patience)
                    records = {t: r for t, r in records.items() if t not in of_source} | dict(advanced)
            failures.raise_all()
        return records

    def run(self) -> None:
        """Notice silent changes and take snapshots further, until `stop` is set.

        A failure is reported once, and retried after a while."""
        failure = ""
        while not self.stop.is_set():
            problems = self._problem_of(self._look)
            # Also after a look that failed: another source can be away.
            problems += self._problem_of(self.step)
            said = "; ".join(dict.fromkeys(problems))
            if problems and said != failure and not self.stop.is_set():
                self.tell(f"The tables' definitions cannot be checked now, and are again later: {said}")
            failure = said
            self.stop.wait(SECONDS_BETWEEN_LOOKS if problems else SECONDS_BETWEEN_STEPS)

    def _look(self) -> None:
        """Look at the catalogs if that is due, or if a table has its first events: it waits for the look."""
        now = time.monotonic()
        if now < min(self._next_look, self._next_glance):
            return
        self._next_glance = now + SECONDS_BETWEEN_GLANCES
        known = frozenset(known_tables(self.lake))
        if now >= self._next_look or not known <= self._met:
            self._next_look = now + SECONDS_BETWEEN_LOOKS
            _noticed(self.lake, known, self._renewals)
            self._met = known

    def _problem_of(self, work: Callable[[], object]) -> list[str]:
        try:
            work()
        except passing_errors(self.lake) as error:
            return [str(error)]
        return []

    def running(self) -> AbstractContextManager[None]:
        """Run in a thread as long as the context lasts."""
        return in_a_thread(self.run, self.stop, "online snapshots")

    def _links(self, sources: set[str]) -> list[SourceLink]:
        return [link for link in self.lake.links() if link.source.name in sources] if sources else []


def _sources_with_open(records: Mapping[TableName, Record]) -> set[str]:
    """Return the sources with a snapshot that somebody has to take further."""
    return {table.source for table, one in records.items() if isinstance(one, Requested | Reading | Read)}


def described(request: Request) -> str:
    """Return one line about what is going to be read again, and why."""
    part = "" if request.condition is None else "a part of "
    return f"{part}{request.table} has to be read again: {'; '.join(request.reasons)}"

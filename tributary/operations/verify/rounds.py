"""Verify the tables of a lake, round after round: one process at a time does it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import pyarrow as pa

from connectors.engines.checksums import RangeChecksums
from connectors.engines.engine import DatabaseTable
from tributary.api.lake_files import LakeFiles
from tributary.api.quarantine import count_quarantine
from tributary.api.rows import UnreadableTable
from tributary.api.tables import LakeTable, read_silver_tables
from tributary.api.timeline import read_last_commit
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import CheckStatus
from tributary.contract.table_name import TableName
from tributary.contract.verify import Verify
from tributary.operations.item_tables import silver_tables
from tributary.operations.keeping import in_a_thread
from tributary.operations.reconcile.barrier import Patience
from tributary.operations.reconcile.hidden import Hiding
from tributary.operations.reconcile.pairing import pair
from tributary.operations.reconcile.proof import (
    SourceLink,
    read_source_tables,
    unseen_tables,
    wait_until_lake_holds,
)
from tributary.operations.snapshots.keeper import record_files
from tributary.operations.snapshots.silent import ask
from tributary.operations.sourced_lake import Failures, OpenedLake, SourcedLake, passing_errors
from tributary.operations.table_outcomes import read_outcomes
from tributary.operations.verify.check import Sides, verify_table
from tributary.operations.verify.database_side import DatabaseSide, FromRows, InDatabase, Load
from tributary.operations.verify.hudi_rows import HudiRows
from tributary.operations.verify.lake_side import LakeSide
from tributary.operations.verify.record import CheckedPart, Verification, VerificationFiles
from tributary.operations.verify.view import cause_of, sentence

SECONDS_FOR_THE_LAKE = 60.0
"""How long the lake may take to catch up, where rows differ."""

_SECONDS_AFTER_A_FAILURE = 30.0
_READINGS = 3
"""How often a round tries to read a table's files."""


def verification_files(opened: OpenedLake) -> VerificationFiles:
    """Return the lake's records of verifications. Raises PipelineDown."""
    lake = opened.open_lake
    return VerificationFiles(lake.files.filesystem, lake.lake.names, lake.quarantine)


class AnotherVerifies(TributaryError):
    """Another process verifies the lake now."""


@dataclass(frozen=True)
class Wanted:
    """What a round looks at.

    tables   None: all
    rows     of each table; None: all
    seconds  after which it begins with no further table; None: with all of them
    """

    tables: Collection[TableName] | None
    rows: int | None
    seconds: float | None = None


@dataclass
class VerifyKeeper:
    """Verifies a lake. `tell` gets what a person should know, `show` what the round does now."""

    lake: SourcedLake
    tell: Callable[[str], None]
    show: Callable[[str], None] = lambda _: None
    wait_seconds: float = SECONDS_FOR_THE_LAKE
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def rules(self) -> Verify:
        return self.lake.lake.verify or Verify()

    def step(self, wanted: Wanted | None = None) -> Mapping[TableName, Verification]:
        """Do one round, and return what is known of all tables that it looked at.

        The tables that were looked at longest ago come first. A source that cannot be verified does not stop
        the others. Raises AnotherVerifies, PipelineDown, and the errors of the databases, Kafka and S3.
        """
        wanted = wanted or Wanted(None, self.rules.rows)
        ends = None if wanted.seconds is None else time.monotonic() + wanted.seconds
        with self._alone():
            found: dict[TableName, Verification] = {}
            failures = Failures(self.lake)
            for link in self.lake.links():
                with failures.one_source():
                    found |= self._verify_source(link, wanted, ends)
            for name in silver_tables(self.lake.open_lake):
                if wanted.tables is None or name in wanted.tables:
                    found[name] = _unverified(
                        name, "its stream tells no position, so only a reconcile can compare it"
                    )
                    self._files.write(found[name])
            failures.raise_all()
            return found

    def known(self) -> Mapping[TableName, Verification]:
        """Return what is known of all tables. Raises PipelineDown and the errors of S3."""
        return self._files.read()

    def run(
        self,
        wanted: Wanted | None = None,
        on_round: Callable[[Mapping[TableName, Verification]], None] | None = None,
    ) -> None:
        """Do one round after another, until `stop` is set. A failure is reported once, and tried again.

        `on_round` gets what each round found. None: this reports only tables with differences.
        """
        told = ""
        while not self.stop.is_set():
            began = time.monotonic()
            pause = self.rules.interval.total_seconds()
            try:
                (on_round or self._tell_differences)(self.step(wanted))
                told = ""
            except passing_errors(self.lake) as error:
                if str(error) != told and not self.stop.is_set():
                    self.tell(f"The lake cannot be verified now, and is again later: {error}")
                told = str(error)
                pause = _SECONDS_AFTER_A_FAILURE
            self.stop.wait(max(0.0, pause - (time.monotonic() - began)))

    def _tell_differences(self, found: Mapping[TableName, Verification]) -> None:
        for one in found.values():
            if one.differences:
                self.tell(sentence(one))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run in a thread as long as the context lasts, if the lake file has `[verify]`."""
        if self.lake.lake.verify is None:
            yield
            return
        with in_a_thread(self.run, self.stop, "verification"):
            yield

    @property
    def _files(self) -> VerificationFiles:
        """The lake's records, with a new client: credentials on AWS expire, and a round can be long."""
        return verification_files(self.lake)

    def _verify_source(
        self, link: SourceLink, wanted: Wanted, ends: float | None
    ) -> Mapping[TableName, Verification]:
        known = {table: one for table, one in self._files.read().items() if table.source == link.source.name}
        found: dict[TableName, Verification] = {}
        with link.connect() as reader, link.connect() as writer:
            silver = _silver(link)
            with link.engine.snapshot(reader):
                tables = read_source_tables(link.source, reader)
                left_out = link.read_all_left_out()
                unseen = unseen_tables(link, reader, {*tables, *left_out}, {*known, *silver})
            for gone in known.keys() - tables.keys() - unseen.keys():
                self._files.remove(gone)
            for name, why in sorted(unseen.items()):
                if wanted.tables is not None and name not in wanted.tables:
                    continue
                known_so_far = known.get(name) or Verification(name)
                found[name] = replace(known_so_far, problem=why, looked_us=_now())
                self._files.write(found[name])
            excused = self._excused(link, left_out)
            looked = {name: one.looked_us for name, one in known.items()}
            for name, table in sorted(tables.items(), key=lambda each: (looked.get(each[0], 0), each[0])):
                if self.stop.is_set() or (wanted.tables is not None and name not in wanted.tables):
                    continue
                if ends is not None and time.monotonic() >= ends:
                    break
                self.show(f"verifying {name}")
                before = known.get(name)
                if name in excused:
                    known_so_far = before or Verification(name)
                    found[name] = replace(known_so_far, problem=excused[name], looked_us=_now(), seconds=0.0)
                elif name not in silver:
                    found[name] = _without_lake_table(link, name, reader)
                else:
                    one = _Table(link, name, table, silver[name], reader, writer)
                    found[name] = self._judged(link, self._verify_table(one, before, wanted.rows))
                self._files.write(found[name])
        return found

    def _excused(self, link: SourceLink, left_out: Mapping[TableName, str]) -> Mapping[TableName, str]:
        """Return the tables that are known not to follow their source now, with the reason."""
        found = {name: f"it is left out: {reason}" for name, reason in left_out.items()}
        found |= dict.fromkeys(link.read_paused(), "it is paused, so it is behind its source")
        found |= {
            name: "it is blocked, so it is behind its source"
            for name, outcome in read_outcomes(self.lake).items()
            if outcome.state == "blocked"
        }
        found |= {
            name: "it is being read again"
            for name, record in record_files(self.lake).read().items()
            if record.state in ("requested", "reading", "read")
        }
        return found

    def _verify_table(self, one: _Table, before: Verification | None, rows: int | None) -> Verification:
        load = Load(self.rules.share, self.rules.statement_seconds, self.stop)
        began = time.monotonic()
        known = before or Verification(one.name)
        for _ in range(_READINGS):
            try:
                sides, problem = one.sides(load, self._wait_for(one))
                if sides is None:
                    found = replace(known, problem=problem, looked_us=_now())
                else:
                    found = verify_table(sides, before, rows)
                break
            except (duckdb.Error, pa.ArrowInvalid, UnreadableTable) as error:
                # A rollback or a cleaning can remove files after the reader has listed them.
                reason = " ".join(str(error).split())
                found = replace(known, problem=f"it cannot be read now: {reason}", looked_us=_now())
        return replace(
            found,
            seconds=round(time.monotonic() - began, 3),
            database_seconds=round(load.seconds, 3),
        )

    def _wait_for(self, one: _Table) -> Callable[[], None]:
        def wait() -> None:
            patience = Patience.of(self.wait_seconds, self.show, self.stop)
            wait_until_lake_holds(one.link, one.writer, [one.name], patience)

        return wait

    def _judged(self, link: SourceLink, found: Verification) -> Verification:
        """Add the likely cause of differences, and let the table be read again if the lake file says so."""
        if not found.differences:
            return replace(found, cause=None, quarantined=0, repair_us=None)
        lake = self.lake.open_lake
        path = f"{lake.quarantine}/{lake.lake.names.table_path(found.table)}"
        quarantined = count_quarantine(lake.files.filesystem, path)
        found = replace(found, cause=cause_of(found, quarantined), quarantined=quarantined)
        policy = link.lake.policy(found.table)
        # A table that still differs after it was read again needs a person.
        if self.rules.repair and policy.repair == "automatic" and found.repair_us is None:
            ask(record_files(self.lake), [found.table], f"{found.differences:,} rows differed")
            found = replace(found, repair_us=_now())
        return found

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self.lake.alone("verify") as is_alone:
            if not is_alone:
                raise AnotherVerifies(
                    "another process verifies this lake now",
                    remedy=["Wait until its round is over.", CheckStatus()],
                )
            yield


@dataclass(frozen=True)
class _Table:
    """A table on both sides, with two sessions: one to read, one that makes the connector confirm."""

    link: SourceLink
    name: TableName
    table: DatabaseTable
    place: LakeTable
    reader: Any
    writer: Any

    def sides(self, load: Load, wait: Callable[[], None]) -> tuple[Sides | None, str | None]:
        """Return both sides, or why the table cannot be compared."""
        link, engine = self.link, self.link.engine
        ways = engine.parts
        if ways is None:
            return None, f"tables of {engine.title} cannot be split, so only a reconcile can compare it"
        policy = link.lake.policy(self.name)
        rows = HudiRows(link.files, self.place, policy.key_parts)
        salt = None if link.hash_salt is None else link.hash_salt().get_secret_value().encode()
        hiding = Hiding(policy, self.table, rows.schema, salt)
        pairing = pair(hiding.sent, rows.schema, self._key(), hiding.left_out)
        if (problem := pairing.key_problem) is not None:
            return None, problem
        if pairing.mismatched:
            column, reason = next(iter(pairing.mismatched.items()))
            return None, f"its column {column} cannot be compared: {reason}"
        if hidden := [column for column in pairing.key if hiding.is_hidden(column)]:
            return None, f"its key column {hidden[0]} is masked or hashed in the lake"
        database: DatabaseSide = (
            InDatabase(engine, ways, self.reader, hiding, pairing, load)
            if isinstance(ways, RangeChecksums) and not hiding.hashes
            else FromRows(engine, ways, self.reader, hiding, pairing, load)
        )
        order = ways.sorted_columns(self.reader, self.table, pairing.key)
        return Sides(self.name, pairing, order, database, LakeSide(rows, pairing), wait), None

    def _key(self) -> tuple[str, ...]:
        commit = read_last_commit(self.link.files.filesystem, self.place.path)
        if commit is not None and commit.ledger.key_columns:
            return commit.ledger.key_columns
        return self.link.lake.policy(self.name).key or self.table.primary_key


def _silver(link: SourceLink) -> Mapping[TableName, LakeTable]:
    files: LakeFiles = link.files
    names = link.lake.names
    return {place.name: place for place in read_silver_tables(files.filesystem, names, link.silver)}


def _without_lake_table(link: SourceLink, name: TableName, session: Any) -> Verification:
    """Return what is known of a table that the lake does not have. It equals a source without rows."""
    at = _now()
    if link.engine.has_rows(session, name):
        return _unverified(name, "the lake does not have it yet")
    return Verification(name, parts=(CheckedPart(equal_us=at),), looked_us=at)


def _unverified(name: TableName, problem: str) -> Verification:
    return Verification(name, problem=problem, looked_us=_now())


def _now() -> int:
    return time.time_ns() // 1000

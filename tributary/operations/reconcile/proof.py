"""The course of a reconciliation, which proves that the lake holds exactly the database's rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
from pydantic import SecretStr

from connectors.engines.definitions import TableDefinition
from connectors.engines.engine import Awaited, DatabaseTable, ReadOffset, RowsUnreadable
from connectors.engines.registry import AnyEngine, engine_of
from tributary.api.event_payloads import EventPayloads
from tributary.api.lake_files import LakeFiles
from tributary.api.rows import read_table, without_key_parts
from tributary.api.tables import LakeTable, read_silver_tables
from tributary.api.timeline import read_last_commit
from tributary.contract.lake import Lake
from tributary.contract.source import Source
from tributary.contract.table_name import TableName
from tributary.operations.kafka_cluster import KafkaCluster
from tributary.operations.kafka_topics import Positions, read_table_names, read_topic_ends
from tributary.operations.reconcile.barrier import Patience, wait_for_connector, wait_for_lake
from tributary.operations.reconcile.comparison import compare
from tributary.operations.reconcile.hidden import Hiding
from tributary.operations.reconcile.pairing import Pairing, comparable_lake_rows, pair
from tributary.operations.reconcile.rounds import Findings

HIDDEN = "the connector's user may not read it"

Session = Any
"""A session of the source's engine. Only the engine uses it."""


@dataclass(frozen=True)
class SourceLink:
    """A source, with access to its database, its topics and its lake tables.

    connect      opens a session of the engine as the connector's user
    silver       the bucket of the tables, with a prefix if there is one
    read_offset  reads the connector's offset from Kafka Connect
    left_out     tables that the last start left out, with the reason
    read_left_out_later
                 returns those that later looks have left out, with the reason
    read_known   returns the tables that the last look has found
    read_config  returns the connector's config; None: it reads all tables that the patterns match
    renew        lets the connector read the tables that the check of the source takes now, if it can
    read_paused  returns the tables that somebody has paused
    hash_salt    returns the salt of hashed columns; None: no table has any
    payloads     reads what the connector sends
    """

    lake: Lake
    source: Source
    connect: Callable[[], Session]
    kafka: KafkaCluster
    files: LakeFiles
    silver: str
    read_offset: ReadOffset
    left_out: Mapping[TableName, str] = field(default_factory=dict)
    read_left_out_later: Callable[[], Mapping[TableName, str]] = dict
    read_known: Callable[[], Mapping[TableName, TableDefinition]] = dict
    read_config: Callable[[], Mapping[str, str] | None] = lambda: None
    renew: Callable[[], None] | None = None
    read_paused: Callable[[], Collection[TableName]] = frozenset
    hash_salt: Callable[[], SecretStr] | None = None
    payloads: EventPayloads = field(default_factory=EventPayloads)

    @property
    def engine(self) -> AnyEngine:
        return engine_of(self.source)

    def unseen(
        self, session: Session, missing: Mapping[TableName, TableDefinition | None]
    ) -> Mapping[TableName, str]:
        """Return the missing tables that may be there all the same, each with why nobody can compare it.

        The connector's user may just not see them, or another connector sends them from another database."""
        name, source = self.source.name, self.source
        wanted = {
            t: known for t, known in missing.items() if t.source == name and source.matches(t.schema, t.table)
        }
        # Tributary's own connector has made a topic for each table of which it has ever sent an event.
        may_be_elsewhere = bool(wanted) and source.has_other_connector
        own = read_table_names(self.kafka, self.lake) if may_be_elsewhere else wanted
        others = wanted.keys() - {*own}
        prefix = source.events.topic_prefix
        sent = f"another connector sends it (topic_prefix {prefix}), and the source's own database lacks it"
        hidden = self.engine.unseen(session, {t: wanted[t] for t in wanted.keys() - others})
        return dict.fromkeys(others, sent) | dict.fromkeys(hidden, HIDDEN)

    def read_all_left_out(self) -> Mapping[TableName, str]:
        """Return the tables that the lake does not take, with the reason."""
        return {**self.read_left_out_later(), **self.left_out}

    def steps_to_kafka(self, session: Session) -> Iterator[Awaited]:
        """Yield what to wait for until Kafka holds all that was committed before the call."""
        return self.engine.steps_to_kafka(session, self.lake, self.source, self.read_offset)


@dataclass(frozen=True)
class TableProof:
    """The findings of one table. `problem` says why its rows cannot be compared."""

    name: TableName
    findings: Findings = field(default_factory=Findings)
    pairing: Pairing | None = None
    problem: str | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether another round can find out more."""
        return self.problem is None and self.findings.is_open

    @property
    def identical(self) -> bool:
        if self.problem is not None or self.pairing is None:
            return False
        return not (self.pairing.mismatched or self.findings.certain or self.findings.suspects)


@dataclass(frozen=True)
class Reconciliation:
    """The findings of all tables of a source, by name."""

    tables: tuple[TableProof, ...]

    @property
    def rows(self) -> int:
        """The number of database rows in these tables."""
        return sum(table.findings.rows for table in self.tables)

    @property
    def identical(self) -> bool:
        return all(table.identical for table in self.tables)


def reconcile(link: SourceLink, patience: Patience) -> Reconciliation:
    """Compare all tables of the source. Repeat those with differences until each one is certain or gone.

    Raises `LakeBehind` if the lake does not catch up with the database in time.
    """
    with link.connect() as reader, link.connect() as writer:
        proofs = _round(link, reader, writer, None, patience)
        while still_open := {name: proof for name, proof in proofs.items() if proof.is_open}:
            proven = {name: proof for name, proof in proofs.items() if not proof.is_open}
            proofs = {**proven, **_round(link, reader, writer, still_open, patience)}
    return Reconciliation(tuple(proofs[name] for name in sorted(proofs)))


def wait_until_lake_holds(
    link: SourceLink, writer: Session, tables: Iterable[TableName], patience: Patience
) -> None:
    """Return when the lake holds all that was committed to the tables before the call.

    `writer` is a session without an open transaction. Raises `LakeBehind`.
    """
    wait_for_connector(link.steps_to_kafka(writer), patience)
    source = link.lake.source_names(link.source)
    awaited = {*tables, *_routed_tables(link)}
    topics = {source.topic(table.schema, table.table): table for table in awaited}

    def read_positions(topic: str) -> Positions:
        path = f"{link.silver}/{link.lake.names.table_path(topics[topic])}"
        commit = read_last_commit(link.files.filesystem, path)
        return {} if commit is None else commit.ledger.positions

    wait_for_lake(read_topic_ends(link.kafka, topics), read_positions, patience)


def _routed_tables(link: SourceLink) -> Iterator[TableName]:
    """Yield the lake's tables of routed events, as far as they have a topic."""
    if link.source.routed_events is not None:
        for table in read_table_names(link.kafka, link.lake):
            if table.source == link.source.name and link.source.routes_to(table.schema):
                yield table


def read_source_tables(source: Source, session: Session) -> dict[TableName, DatabaseTable]:
    """Return the tables of the database that the source takes, by their names in the lake."""
    return {
        TableName(source.name, table.schema, table.name): table
        for table in engine_of(source).read_tables(session)
        if source.matches(table.schema, table.name)
    }


def _round(
    link: SourceLink,
    reader: Session,
    writer: Session,
    before: Mapping[TableName, TableProof] | None,
    patience: Patience,
) -> dict[TableName, TableProof]:
    """Compare the tables of `before`, or all tables, once. Tables that no longer exist are left out."""
    with link.engine.snapshot(reader):
        tables = {
            name: table
            for name, table in read_source_tables(link.source, reader).items()
            if before is None or name in before
        }
        paused, left_out = link.read_paused(), link.read_all_left_out()
        followed = [name for name in tables if name not in left_out and name not in paused]
        wait_until_lake_holds(link, writer, followed, patience)
        places = read_silver_tables(link.files.filesystem, link.lake.names, link.silver)
        silver = {table.name: table for table in places}
        unseen = unseen_tables(link, reader, {*tables, *left_out}, silver) if before is None else {}
        proofs = {name: TableProof(name, problem=why) for name, why in unseen.items()}
        for number, (name, table) in enumerate(sorted(tables.items()), start=1):
            patience.tell(f"comparing {name} ({number} of {len(tables)})")
            known = before[name] if before is not None else TableProof(name)
            if name in left_out:
                proofs[name] = replace(known, problem=f"it is left out: {left_out[name]}")
                continue
            if name in paused:
                proofs[name] = replace(known, problem="it is paused, so it is behind its source")
                continue
            try:
                proofs[name] = _look_at_table(link, reader, table, silver.get(name), known)
            except (RowsUnreadable, duckdb.Error, pa.ArrowInvalid) as error:
                # The session and its snapshot still work, so the other tables can be compared.
                found = " ".join(str(error).split())
                proofs[name] = replace(known, problem=f"its rows cannot be read in comparable form: {found}")
    return proofs


def unseen_tables(
    link: SourceLink, reader: Session, explained: Iterable[TableName], lake: Iterable[TableName]
) -> Mapping[TableName, str]:
    """Return the tables that the source had, or that the `lake` has, and why nobody can compare them.

    `explained` are those of which that is not the question: the user sees them, or they are left out."""
    known = link.read_known()
    missing = {*known, *lake} - {*explained}
    return link.unseen(reader, {name: known.get(name) for name in missing})


def _look_at_table(
    link: SourceLink,
    reader: Session,
    table: DatabaseTable,
    silver: LakeTable | None,
    known: TableProof,
) -> TableProof:
    policy = link.lake.policy(known.name)
    lake = pa.table({}) if silver is None else without_key_parts(read_table(link.files, silver), policy)
    salt = None if link.hash_salt is None else link.hash_salt().get_secret_value().encode()
    hiding = Hiding(policy, table, lake.schema, salt)
    pairing = pair(hiding.sent, lake.schema, _key(link, table, silver, known.name), hiding.left_out)
    if (problem := pairing.key_problem) is not None:
        return replace(known, problem=problem)
    comparison = compare(
        hiding.read(partial(link.engine.read_rows, reader), pairing.schema),
        comparable_lake_rows(lake, pairing),
        pairing.schema,
        pairing.key,
    )
    return replace(known, findings=known.findings.after(comparison), pairing=pairing)


def _key(
    link: SourceLink, table: DatabaseTable, silver: LakeTable | None, name: TableName
) -> tuple[str, ...]:
    """Return the key that the lake uses, or will use once it has the table."""
    commit = None if silver is None else read_last_commit(link.files.filesystem, silver.path)
    if commit is not None and commit.ledger.key_columns:
        return commit.ledger.key_columns
    return link.lake.policy(name).key or table.primary_key

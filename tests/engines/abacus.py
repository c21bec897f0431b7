"""A made-up engine with its own entries, names, types and steps. It records what it is asked to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import pyarrow as pa

from connectors.deployment import ConnectorConfig, DatabaseAccess, Deployment, SecretReference
from connectors.engines.database_log import DatabaseLog, LogReader
from connectors.engines.definitions import TableDefinition
from connectors.engines.engine import (
    Awaited,
    Checked,
    DatabaseColumn,
    DatabaseNotReady,
    DatabaseTable,
    Engine,
    LeftOut,
    Login,
    NotConnected,
    ReadOffset,
    UnknownTable,
)
from connectors.engines.forms import INTEGER, TEXT, TIME_OF_DAY
from connectors.engines.survey import DatabaseAddress, SourceEntries, Survey, SurveyedTable
from tributary.contract.entries import Port, Problem
from tributary.contract.lake import Lake
from tributary.contract.online_snapshot import Request
from tributary.contract.remedies import Remedies, remedies_of
from tributary.contract.source import Connection, ExistingDatabase, Source
from tributary.contract.table_name import TableName
from tributary.contract.topic_form import TopicForm

PORT = 7777


class AbacusConnection(Connection):
    """Its servers have a number of rods."""

    port: Port = PORT
    rods: int = 13

    def problems(self, entry: str) -> Iterator[Problem]:
        yield from super().problems(entry)
        if self.rods < 2:
            yield Problem(f"{entry}.rods", "too few rods", str(self.rods), "2 or more")


class ExistingAbacus(ExistingDatabase):
    """On AWS, too."""

    port: Port = PORT
    rods: int = 13


class AbacusSource(Source):
    """`frame`, if given, is part of each topic's name."""

    existing: ClassVar[type[ExistingDatabase]] = ExistingAbacus

    engine: Literal["abacus"]
    connection: AbacusConnection | None = None
    frame: str | None = None

    @property
    def topic_form(self) -> TopicForm:
        return TopicForm(() if self.frame is None else (self.frame,))


TABLE = DatabaseTable(
    schema="counting",
    name="beads",
    columns=(
        DatabaseColumn("id", "whole", INTEGER),
        DatabaseColumn("color", "word", TEXT),
        DatabaseColumn("moved_at", "clock", TIME_OF_DAY),
        DatabaseColumn("sound", "noise", form=None),
    ),
    primary_key=("id",),
)


@dataclass
class AbacusServer:
    """The content of the tests' one server. `said` records its requests, in order.

    has_rust  one of its tables cannot be taken
    lags      how many times it reports that something has not reached Kafka yet
    covered   tables that it no longer shows to anybody
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    is_prepared: bool = False
    has_rust: bool = False
    skipped: frozenset[TableName] = frozenset()
    refuses: str | None = None
    lags: int = 0
    definitions: dict[TableName, TableDefinition] = field(default_factory=dict)
    asked: dict[str, Request] = field(default_factory=dict)
    empty: frozenset[TableName] = frozenset()
    covered: frozenset[TableName] = frozenset()


@dataclass
class AbacusSession:
    server: AbacusServer
    user: str

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.said.append(f"{self.user} leaves")


class AbacusEngine(Engine[AbacusSource, AbacusSession]):
    title = "Abacus"
    port = PORT
    schemes = ("abacus",)
    plugin = "debezium-connector-abacus"
    connector_class = "org.example.AbacusConnector"
    connection_keys = "host, port and rods"
    driver_errors = (BrokenPipeError,)

    def __init__(self, server: AbacusServer) -> None:
        self.server = server

    def render(
        self, lake: Lake, source: AbacusSource, deployment: Deployment, untaken: Collection[TableName] = ()
    ) -> ConnectorConfig:
        access = deployment.databases[source.name]
        config = {
            "connector.class": self.connector_class,
            "abacus.address": f"{access.user}@{access.host}:{access.port}",
            "abacus.password": access.password.placeholder,
            "abacus.beam": self.beam(lake, source),
            "abacus.frames": " ".join(sorted({pattern.schema for pattern in source.patterns.include})),
            "topic.prefix": lake.source_names(source).topic_prefix,
            **access.options,
            **({"abacus.skips": ",".join(map(str, sorted(untaken)))} if untaken else {}),
        }
        return ConnectorConfig(lake.source_names(source).connector, config)

    def beam(self, lake: Lake, source: AbacusSource) -> str:
        """Return a physical name that no other engine has."""
        return f"beam-of-{lake.name}-{source.name}"

    def user(self, lake: Lake, source: AbacusSource) -> str:
        named = None if source.connection is None else source.connection.user
        return named or f"counter-{lake.name}"

    def access(
        self, lake: Lake, source: AbacusSource, host: str, port: int, password: SecretReference
    ) -> DatabaseAccess:
        rods = 13 if source.connection is None else source.connection.rods
        return DatabaseAccess(host, port, self.user(lake, source), password, {"abacus.rods": str(rods)})

    def remedies(self) -> Mapping[str, Remedies]:
        return {"a rod broke": remedies_of("Replace the rod.")}

    def unknown_table(self, failure: str) -> UnknownTable | None:
        found = re.fullmatch(r"(?:Exception: )?no rod (?:of (\w+) )?is called (\w+)", failure)
        return None if found is None else UnknownTable(found[1], found[2])

    def defines(self, config: Mapping[str, str]) -> Callable[[str], bool] | None:
        return config["abacus.frames"].split().__contains__

    def remains(self, config: Mapping[str, str]) -> str | None:
        return f"Take {config['abacus.beam']} off the frame."

    def connect(self, source: AbacusSource, login: Login) -> AbacusSession:
        if self.server.refuses is not None:
            raise NotConnected(f"frame {source.frame}", self.server.refuses)
        self.server.said.append(f"{login.user} comes to {login.host}:{login.port}")
        return AbacusSession(self.server, login.user)

    def check_server(self, session: AbacusSession, lake: Lake, source: AbacusSource) -> tuple[str, ...]:  # noqa: ARG002
        return ("a bead is loose",)

    def check_tables(self, session: AbacusSession, lake: Lake, source: AbacusSource) -> Checked:
        session.server.said.append(f"{session.user} checks {lake.name}.{source.name}")
        rusty = TableName(source.name, "counting", "rust")
        problem = DatabaseNotReady("the beads do not slide", where=str(rusty), remedy="Oil it.")
        left_out = (LeftOut(rusty, (problem,)),) if session.server.has_rust else ()
        return Checked(left_out)

    def check_later_tables(self, session: AbacusSession, lake: Lake, source: AbacusSource) -> Checked:
        return self.check_tables(session, lake, source)

    def entries_of(self, address: DatabaseAddress) -> SourceEntries:
        frame = {"frame": address.database} if address.database else {}
        return SourceEntries(frame, {"rods": int(address.options.get("rods", 13))})

    def survey(self, session: AbacusSession, address: DatabaseAddress) -> Survey:  # noqa: ARG002
        session.server.said.append(f"{session.user} surveys")
        columns = {column.name: column.type for column in TABLE.columns}
        rust = (SurveyedTable("counting", "rust", {}),) if session.server.has_rust else ()
        return Survey("Abacus 2", (SurveyedTable("counting", "beads", columns, 3, ("id",)), *rust))

    def sample(
        self,
        session: AbacusSession,  # noqa: ARG002
        table: SurveyedTable,  # noqa: ARG002
        columns: Iterable[str],
    ) -> Sequence[Sequence[str | None]]:
        return [["red" for _ in columns]]

    def prepare(
        self,
        admin: AbacusSession,
        lake: Lake,
        source: AbacusSource,
        password: str,
        untaken: Collection[TableName],
    ) -> tuple[str, ...]:
        admin.server.said.append(f"{admin.user} prepares {self.beam(lake, source)}")
        admin.server.is_prepared = bool(password)
        admin.server.skipped = frozenset(untaken)
        return ("oil the rods",)

    def check_prepared(
        self, session: AbacusSession, lake: Lake, source: AbacusSource, untaken: Collection[TableName]
    ) -> None:
        if not session.server.is_prepared or session.server.skipped != frozenset(untaken):
            raise DatabaseNotReady("no beam", where=source.name, expected=self.beam(lake, source))

    def script(self, lake: Lake, source: AbacusSource, untaken: Collection[TableName]) -> str:
        return f"MOUNT {self.beam(lake, source)}\n" + "".join(f"SKIP {name}\n" for name in sorted(untaken))

    def script_command(self, script: Path) -> str:
        return f"abacus < {script}"

    def forget(self, admin: AbacusSession, lake: Lake, source: AbacusSource) -> None:
        admin.server.said.append(f"{admin.user} forgets {self.beam(lake, source)}")

    def read_log(
        self,
        session: AbacusSession,
        lake: Lake,  # noqa: ARG002
        source: AbacusSource,  # noqa: ARG002
        reader: LogReader,  # noqa: ARG002
    ) -> DatabaseLog:
        return DatabaseLog(unread=session.server.lags)

    def steps_to_kafka(
        self,
        session: AbacusSession,
        lake: Lake,
        source: AbacusSource,
        read_offset: ReadOffset,  # noqa: ARG002
    ) -> Iterator[Awaited]:
        def lacking() -> str | None:
            session.server.lags -= 1
            return f"{session.server.lags} beads" if session.server.lags >= 0 else None

        session.server.said.append(f"{session.user} marks {self.beam(lake, source)}")
        yield Awaited("the beads", lacking)

    def snapshot(self, session: AbacusSession) -> AbstractContextManager[None]:
        @contextmanager
        def held() -> Iterator[None]:
            session.server.said.append("snapshot begins")
            yield
            session.server.said.append("snapshot ends")

        return held()

    def read_definitions(
        self, session: AbacusSession, lake: Lake, source: AbacusSource
    ) -> Mapping[TableName, TableDefinition]:
        session.server.said.append(f"the tables of {lake.name}.{source.name} are described")
        shown = session.server.definitions.items()
        return {table: one for table, one in shown if table not in session.server.covered}

    def unseen(
        self, session: AbacusSession, missing: Mapping[TableName, TableDefinition | None]
    ) -> frozenset[TableName]:
        return session.server.covered & missing.keys()

    def has_rows(self, session: AbacusSession, table: TableName) -> bool:
        session.server.said.append(f"is {table} empty?")
        return table not in session.server.empty

    def ask_for_snapshot(
        self, session: AbacusSession, lake: Lake, source: AbacusSource, request: Request
    ) -> None:
        session.server.said.append(f"{lake.name}.{source.name} asks for {request.table}")
        session.server.asked.setdefault(request.id, request)

    def forget_request(
        self, session: AbacusSession, lake: Lake, source: AbacusSource, request: Request
    ) -> None:
        session.server.said.append(f"{lake.name}.{source.name} has {request.table}")
        session.server.asked.pop(request.id, None)

    def read_tables(self, session: AbacusSession) -> tuple[DatabaseTable, ...]:
        session.server.said.append("tables are read")
        other = DatabaseTable("hidden", "beads", TABLE.columns, TABLE.primary_key)
        covered = {table.table for table in session.server.covered}
        return tuple(table for table in (TABLE, other) if table.name not in covered)

    def read_rows(
        self, session: AbacusSession, table: DatabaseTable, columns: Iterable[str]
    ) -> Iterator[pa.RecordBatch]:
        forms = {column.name: column.form for column in table.columns}
        schema = pa.schema([(name, form.arrow) for name in columns if (form := forms[name]) is not None])
        yield pa.RecordBatch.from_pylist(session.server.rows, schema)

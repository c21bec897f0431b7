"""Start, connect, repair and stop the servers of a state folder, in the right order."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connectors import iceberg_sink
from connectors.avro_converter import converter_kind
from connectors.connect_rest import ConnectRest
from connectors.deployment import ConnectorConfig
from connectors.engines.engine import Checked
from connectors.engines.registry import engine_of, engine_of_connector
from connectors.plugins import Plugin, build_plugins, plugins_for, unpack_plugins
from tributary.artifacts.fetch import FetchProgress
from tributary.contract.lake import Lake
from tributary.contract.remedies import Words, plain_words
from tributary.contract.source import Source
from tributary.contract.table_name import TableName
from tributary.local import apicurio, connect, dynamodb, kafka, kinesis, mariadb, postgres, s3, spark
from tributary.local.all_servers import ALL_SERVERS, SERVICES
from tributary.local.connector_state import ConnectorKeeper
from tributary.local.databases import prepare_database
from tributary.local.engine_servers import servers_for
from tributary.local.left_out import LeftOutTable, as_gone, as_records, write_left_out
from tributary.local.local_server import LocalServer
from tributary.local.process import POLL_SECONDS, ServiceFailed, StartCancelled, has_died, read_process
from tributary.local.schema_registry import check_registry
from tributary.local.server_files import read_server_files
from tributary.local.servers import Servers
from tributary.local.source_connector import SourceConnector
from tributary.local.start_plan import (
    BRONZE,
    PLUGINS,
    REGISTRY,
    connector_step,
    database_step,
    has_item_servers,
    start_plan,
)
from tributary.local.startup import Progress, Startup, noted_interrupts
from tributary.local.state import LocalSettings, StateFolder, choose_settings

RESPONSE_SECONDS = 10.0
"""How long a server that was started earlier may take to answer before it is restarted."""

UNDO_SECONDS = 3.0
"""How long to wait for a server to stop after a failed start. Barely started, it has nothing to lose."""

Seed = Callable[[Source, Any], None]
"""A function that fills a source's local database before Debezium reads it, in an administrator's session."""


@dataclass(frozen=True)
class RunningPipeline:
    """A pipeline that is up.

    changed   what this start had to do, if anything did not run already
    left_out  tables that the lake file wants and that cannot be taken, ordered by name
    """

    lake: Lake
    state: StateFolder
    settings: LocalSettings
    changed: tuple[str, ...]
    warnings: tuple[str, ...]
    left_out: tuple[LeftOutTable, ...]
    seconds: float


def up(
    lake: Lake,
    state: StateFolder,
    progress: Progress = lambda *_: None,
    *,
    fetch_progress: Callable[[FetchProgress], None] | None = None,
    seed: Seed | None = None,
    resnapshot: Collection[Source] = (),
    words: Words = plain_words,
) -> RunningPipeline:
    """Start what is not running, and return once the connectors run.

    A server or connector that runs as the lake file says stays untouched. But Debezium forgets its position
    in the sources in `resnapshot`, and takes a new snapshot of them. Tables that cannot be taken are left out
    and recorded in the state folder, in the `words` of a surface. On an error and on Ctrl-C (or SIGTERM,
    SIGHUP) everything that this call started is stopped again. Raises the TributaryErrors of every part.
    """
    began = time.monotonic()
    state.create()
    with state.exclusive():
        files = read_server_files(
            fetch_progress,
            with_mariadb=mariadb.SERVICE in servers_for(lake),
            with_apicurio=lake.has_registry_here,
            with_items=has_item_servers(lake),
        )
        needed = plugins_for(lake) if lake.connected_sources else frozenset[str]()
        plugins = build_plugins(progress=fetch_progress, names=needed, avro=converter_kind(lake, here=True))
        connect_has_died = has_died(connect.SERVICE, state.run)
        running = frozenset(name for name in SERVICES if read_process(name, state.run) is not None)
        settings = choose_settings(state, lake.name, lake.local.fixed_ports, running)
        state.write_settings(settings)
        with noted_interrupts() as interrupted:
            startup = Startup(progress, interrupted)
            servers = Servers(lake, state, settings, files)
            start = _Start(servers, plugins, seed, frozenset(resnapshot), startup, connect_has_died)
            try:
                start.run()
            except BaseException:
                started = [name for name in SERVICES if name not in running]
                with suppress(ServiceFailed):  # What ended the start matters more.
                    _stop_servers(state, started, patience_seconds=UNDO_SECONDS)
                raise
        left_out = as_records((each for found in start.found.values() for each in found.left_out), words)
        write_left_out(state, (*left_out, *as_gone(start.gone)))
    seconds = time.monotonic() - began
    changed, warnings = tuple(start.changed), tuple(start.warnings)
    return RunningPipeline(lake, state, settings, changed, warnings, left_out, seconds)


def down(state: StateFolder) -> tuple[str, ...]:
    """Stop the servers and the Spark app, and return the names of those that ran. Their data stays."""
    if not state.path.is_dir():
        return ()
    with state.exclusive(), noted_interrupts():
        stopped = tuple(app for app in spark.APPS if spark.stop_spark(state.run, service=app))
        return stopped + _stop_servers(state, SERVICES)


def _stop_servers(state: StateFolder, names: Collection[str], **patience: float) -> tuple[str, ...]:
    """Stop the servers and return the names of those that ran. Servers that write to others stop first.

    One that cannot be stopped keeps no other one running. Raises ServiceFailed for the first one."""
    done: dict[str, Future[bool]] = {}
    for ends_first in (True, False):
        together = [each for each in ALL_SERVERS if each.service in names and each.ends_first is ends_first]
        with ThreadPoolExecutor(thread_name_prefix="stop") as threads:
            stops = {each.service: threads.submit(each.stop, state.run, **patience) for each in together}
        done |= stops
    return tuple(name for name, stopped in done.items() if stopped.result())


@dataclass
class _Start:
    """One call of `up`: its steps, the steps that had something to do, and each source's findings.

    gone  tables that no connector reads, because they were left out and are gone
    """

    servers: Servers
    plugins: tuple[Plugin, ...]
    seed: Seed | None
    resnapshot: frozenset[Source]
    startup: Startup
    connect_has_died: bool
    changed: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    found: dict[str, Checked] = field(default_factory=dict)
    gone: set[TableName] = field(default_factory=set)

    def run(self) -> None:
        """Run the steps of the plan, each as soon as its predecessors are done."""
        plan = tuple(start_plan(self.servers.lake, self.resnapshot))
        has_connect = bool(self.servers.lake.connected_sources)
        with self.startup:
            begun: dict[str, Future[Any]] = {}
            work = self._work()
            if has_connect:
                plugin_path = self.startup.step(PLUGINS, lambda: unpack_plugins(self.plugins))
                begun[PLUGINS] = plugin_path
                work |= self._work_of_connect(plugin_path)
            for step in plan:
                after = tuple(begun[name] for name in step.after)
                begun[step.name] = self._step(step.name, work[step.name], after)
        if has_connect:
            self._remove_former_sources()

    def _work(self) -> dict[str, Callable[[], bool]]:
        """Return the work of each step that starts a server. It returns whether it had to do anything."""
        return {
            postgres.SERVICE: self._ensure_postgres,
            mariadb.SERVICE: self._ensure_mariadb,
            kafka.SERVICE: self._ensure_kafka,
            s3.SERVICE: self._ensure_s3,
            apicurio.SERVICE: self._ensure_apicurio,
            REGISTRY: self._check_registry,
            kinesis.SERVICE: self._ensure_kinesis,
            dynamodb.SERVICE: self._ensure_dynamodb,
        }

    def _work_of_connect(self, plugin_path: Future[Path]) -> dict[str, Callable[[], bool]]:
        """Return the work of the steps for Kafka Connect and the sources that it reads."""
        lake, deployment = self.servers.lake, self.servers.deployment
        work: dict[str, Callable[[], bool]] = {
            connect.SERVICE: lambda: self._ensure_connect(plugin_path.result()),
            BRONZE: self._run_connector(iceberg_sink.render(lake, deployment)),
        }
        for source in lake.connected_sources:
            connector = engine_of(source).render(lake, source, deployment)
            work[database_step(source)] = self._prepare(source, connector)
            work[connector_step(source)] = self._run_connector_of(source)
        return work

    def _run_connector_of(self, source: Source) -> Callable[[], bool]:
        """Return the step that runs the source's connector, without the tables that are left out."""

        def run() -> bool:
            connector = SourceConnector(self.servers.database(source), self.servers.deployment, self._keeper)
            ran = connector.ensure_running(self.found[source.name], recreate=self.connect_has_died)
            self.gone |= ran.gone
            return ran.changed

        return run

    def _step(
        self, name: str, ensure: Callable[[], bool], after: tuple[Future[Any], ...] = ()
    ) -> Future[bool]:
        """Run a step. `ensure` returns whether it had to do anything."""

        def work() -> bool:
            did_something = ensure()
            if did_something:
                self.changed.append(name)
            return did_something

        return self.startup.step(name, work, after, did_something=bool)

    def _ensure_postgres(self) -> bool:
        server = self.servers.postgres
        started = self._ensure(server)
        with postgres.connect_as_admin(server) as admin:
            password = self.servers.settings.secrets.catalog.get_secret_value()
            postgres.create_login(admin, postgres.CATALOG_ROLE, password)
            postgres.create_database(admin, postgres.CATALOG, owner=postgres.CATALOG_ROLE)
            for database in postgres.databases_here(self.servers.lake):
                postgres.create_database(admin, database)
        return started

    def _ensure_mariadb(self) -> bool:
        server = self.servers.mariadb
        started = self._ensure(server)
        mariadb.create_databases(server, self.servers.lake)
        return started

    def _ensure_kafka(self) -> bool:
        broker, lake = self.servers.kafka, self.servers.lake
        started = self._ensure(broker)
        # The sink expects its control topic to exist. It and Debezium create or find all others.
        kafka.create_topic(broker.bootstrap, lake.names.bronze_control_topic, partitions=1)
        # Debezium creates a topic as the lake file says, and never changes it after the file has changed.
        kafka.configure_topics(broker.bootstrap, lake.table_topics_regex, self.servers.topics.config)
        return started

    def _ensure_s3(self) -> bool:
        server = self.servers.s3
        started = self._ensure(server)
        s3.create_buckets(server, self.servers.lake.names.buckets)
        return started

    def _ensure_apicurio(self) -> bool:
        return self._ensure(self.servers.apicurio)

    def _check_registry(self) -> bool:
        warning = check_registry(self.servers.lake, self.servers.settings)
        if warning is not None:
            self.warnings.append(warning)
        return False

    def _ensure_kinesis(self) -> bool:
        server = self.servers.kinesis
        started = self._ensure(server)
        kinesis.create_streams(server, kinesis.streams_here(self.servers.lake))
        return started

    def _ensure_dynamodb(self) -> bool:
        server = self.servers.dynamodb
        if not server.runs_as():
            server.stop(server.run)
        return self._ensure(server)

    def _ensure_connect(self, plugin_path: Path) -> bool:
        worker = self.servers.connect(plugin_path)
        connect.write_secrets(worker)
        # A task that is stopped while a server is away can leave one of the sink's coordinators behind, with
        # a closed catalog and the only partition of the control topic. Then nothing would reach bronze again.
        has_lost_a_server = not {*SERVICES}.isdisjoint(self.changed)
        if has_lost_a_server or not connect.is_configured_as(worker):
            worker.stop(worker.run)
        return self._ensure(worker)

    def _ensure(self, server: LocalServer) -> bool:
        """Start the server unless it runs and answers. Stop it first if it does not answer."""
        if read_process(server.service, server.run) is not None:
            deadline = time.monotonic() + RESPONSE_SECONDS
            while time.monotonic() < deadline:
                if server.answers():
                    return False
                if self.startup.cancelled.wait(POLL_SECONDS):
                    raise StartCancelled(server.service)
            server.stop(server.run)
        server.start(self.startup.cancelled)
        return True

    def _prepare(self, source: Source, connector: ConnectorConfig) -> Callable[[], bool]:
        def prepare() -> bool:
            database = self.servers.database(source)
            if source in self.resnapshot:
                self._keeper.remove(connector.name)
                with database.connect() as admin:
                    database.engine.forget(admin, self.servers.lake, source)
            if self.seed is not None and source.connection is None:
                with database.connect() as admin:
                    self.seed(source, admin)
            self.found[source.name] = prepare_database(database)
            self.warnings.extend(self.found[source.name].warnings)
            if source in self.resnapshot:
                self._keeper.forget_offsets(connector)
            return False  # Only a change that a second `up` would not repeat counts.

        return prepare

    def _run_connector(self, connector: ConnectorConfig) -> Callable[[], bool]:
        return lambda: self._keeper.ensure_running(connector, recreate=self.connect_has_died)

    def _remove_former_sources(self) -> None:
        """Stop reading sources that are no longer in the lake file. Their offsets stay.

        A connector that somebody else has created in this Connect is left alone."""
        lake, rest = self.servers.lake, self._keeper.rest
        wanted = {lake.source_names(source).connector for source in lake.connected_sources}
        own = set(filter(lake.names.is_own_connector, rest.connectors()))
        for name in own - wanted - {lake.names.bronze_connector}:
            config = rest.config(name) or {}
            engine = engine_of_connector(config)
            remains = None if engine is None else engine.remains(config)
            self._keeper.remove(name)
            self.changed.append(name)
            removed = f"{name} was removed, because its source is no longer in the lake file."
            self.warnings.append(" ".join(filter(None, (removed, remains))))

    @property
    def _keeper(self) -> ConnectorKeeper:
        return ConnectorKeeper(ConnectRest(self.servers.settings.connect_url), self.startup.cancelled)

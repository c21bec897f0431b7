"""A lake of MySQL continues after a failover to a replica, or is refused until a new snapshot."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from threading import Event
from typing import Any

import pytest
import requests

from connectors.engines.binlog.session import Session, execute, first_row, rows_of
from tests.cli.binlog_lakes import LAKE_TABLES, OF_TRANSACTIONS, transact
from tests.cli.test_every_type import differences
from tests.cli.test_mysql import LAKE, open_session
from tests.cli.test_whole_pipeline import Tributary
from tests.local.landed import wait_until
from tests.mysql_server import ADMIN, MySqlServer, running_mysql
from tributary.contract.lake import read_lake
from tributary.local.pipeline import down, up
from tributary.local.state import StateFolder
from tributary.operations.source_facts import read_source_logs
from tributary.operations.workspace import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

PASSWORD = token_hex(8)
WITH_GTIDS = {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}


@dataclass(frozen=True)
class FailoverLake(Tributary):
    """A lake whose address is that of the first server. Later ones take over that server's port."""

    servers: list[MySqlServer]
    folder: Path
    stack: ExitStack

    @property
    def primary(self) -> MySqlServer:
        return self.servers[-1]

    def session(self) -> Session:
        return open_session(self.primary)

    def add_replica(self) -> MySqlServer:
        """Start a server, and have it repeat what the primary has done."""
        number = len(self.servers) + 1
        server = self.stack.enter_context(
            running_mysql(self.folder / str(number), PASSWORD, server_id=str(number), **WITH_GTIDS)
        )
        with server.connect() as session:
            execute(
                session,
                f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {self.primary.port}, "
                f"SOURCE_USER = '{ADMIN}', SOURCE_PASSWORD = '{PASSWORD}', SOURCE_AUTO_POSITION = 1, "
                "GET_SOURCE_PUBLIC_KEY = 1",
            )
            execute(session, "START REPLICA")
        self.wait_for(server)
        return server

    def wait_for(self, replica: MySqlServer) -> None:
        with self.session() as session:
            done = first_row(session, "SELECT @@gtid_executed AS gtids")
        assert done is not None
        with replica.connect() as session:
            found = first_row(session, "SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, 60) AS late", (done["gtids"],))
        assert found == {"late": 0}

    def fail_over_to(self, replica: MySqlServer) -> None:
        """Stop the primary, and let the replica take over its address."""
        old = self.primary
        old.stop(old.run)
        with replica.connect() as session:
            execute(session, "STOP REPLICA")
            execute(session, "RESET REPLICA ALL")
        replica.stop(replica.run)
        promoted = replace(replica, port=old.port)
        self.servers.append(promoted)
        promoted.start(Event())

    def connector(self, action: str) -> None:
        workspace = Workspace.open(self.lake_file, self.state)
        name = workspace.lake.source_names(workspace.lake.sources[0]).connector
        url = f"{workspace.settings.connect_url}/connectors/{name}/{action}"
        requests.put(url, timeout=30).raise_for_status()

    @contextmanager
    def following(self) -> Iterator[None]:
        """Let the lake follow the connector for as long as the context lasts."""
        process = self.start("ingest", "--follow", "--json")
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=300)
        assert process.returncode == 130, errors

    def status(self) -> Any:
        return self.json("status", status=None)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailoverLake]:
    folder = tmp_path_factory.mktemp("failover")
    lake_file, state = folder / "lake.toml", StateFolder(folder / "state")
    with ExitStack() as stack, pytest.MonkeyPatch.context() as environment:
        environment.setenv("TRIBUTARY_TESTS_MYSQL_PASSWORD", PASSWORD)
        first = stack.enter_context(running_mysql(folder / "1", PASSWORD, **WITH_GTIDS))
        lake_file.write_text(LAKE.format(port=first.port, admin=ADMIN) + LAKE_TABLES)
        with first.connect() as session:
            execute(session, "CREATE DATABASE shop")
            session.select_db("shop")
            for table in OF_TRANSACTIONS:
                execute(
                    session,
                    f"CREATE TABLE {table} (id bigint PRIMARY KEY, name varchar(50) NOT NULL, "
                    "amount decimal(12, 3), at datetime(6))",
                )
            transact(session, random.Random(1), 20)
            for _ in range(20):
                execute(session, "FLUSH BINARY LOGS")
        try:
            up(read_lake(lake_file), state)
            yield FailoverLake(lake_file, state.path, [first], folder, stack)
        finally:
            down(state)
            shutil.rmtree(state.path, ignore_errors=True)


def last_file(session: Session) -> int:
    return int(str(rows_of(session, "SHOW BINARY LOGS")[-1]["Log_name"]).rpartition(".")[2])


def test_the_lake_goes_on_at_a_promoted_replica_whose_files_have_lower_numbers(lake: FailoverLake) -> None:
    chance = random.Random(2)
    replica = lake.add_replica()
    with lake.following():
        with lake.session() as session:
            transact(session, chance, 20)
        assert differences(lake.json("reconcile", "--wait", "600")) == []
        lake.connector("stop")
        with lake.session() as session:
            # The connector reads these from the log of the replica.
            transact(session, chance, 30)
            before = last_file(session)
        lake.wait_for(replica)
        lake.fail_over_to(replica)
        with lake.session() as session:
            transact(session, chance, 30)
            assert last_file(session) < before
        lake.connector("resume")
        with lake.session() as session:
            transact(session, chance, 30)
            execute(session, "TRUNCATE copied")
            transact(session, chance, 10)

        found = lake.json("reconcile", "--wait", "600", status=None)
    assert differences(found) == []
    assert all(table["identical"] for table in found["tables"])
    assert lake.json("quarantine", "list") == []


def test_a_replica_that_lacks_what_the_lake_has_is_refused_until_a_new_snapshot(lake: FailoverLake) -> None:
    chance = random.Random(3)
    replica = lake.add_replica()
    with replica.connect() as session:
        execute(session, "STOP REPLICA")
    with lake.following():
        with lake.session() as session:
            transact(session, chance, 20)
        assert differences(lake.json("reconcile", "--wait", "600")) == []

    lake.fail_over_to(replica)
    with lake.session() as session:
        transact(session, chance, 10)

    def is_told() -> bool:
        workspace = Workspace.open(lake.lake_file, lake.state)
        return "lacks transactions that the connector has read" in str(read_source_logs(workspace))

    def failure() -> str:
        return " ".join(str(one["failure"]) for one in lake.status()["connectors"])

    wait_until(is_told, "the missing transactions", patience_seconds=180, poll_seconds=3)
    # The connector failed when its server stopped. When it starts, it compares the GTIDs.
    lake.connector("stop")
    lake.connector("resume")
    wait_until(
        lambda: "no longer available on the server" in failure(),
        "the refusal",
        patience_seconds=180,
        poll_seconds=3,
    )
    shown = lake.run("status", status=1)
    assert "lacks transactions that the connector has read" in " ".join(shown.split())
    assert "tributary up --resnapshot" in " ".join(shown.split())
    lake.run("up", "--resnapshot", "shop")
    with lake.following():
        # It removes the rows that only the old server had.
        lake.run("snapshot", "shop.shop.*")
        found = lake.json("reconcile", "--wait", "600", status=None)
    assert differences(found) == []
    assert all(table["identical"] for table in found["tables"])

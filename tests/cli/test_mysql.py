"""A real MySQL passes through the whole pipeline: every type, random transactions, and DDL in between."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from connectors.engines.binlog.catalog import read_server
from connectors.engines.binlog.session import Session, execute
from tests.cli.binlog_lakes import (
    LAKE_TABLES,
    VALUES,
    BinlogLake,
    check_same_values_from_snapshot_and_log,
    check_types_and_transactions,
    set_up,
)
from tests.mysql_server import ADMIN, MySqlServer, running_mysql
from tributary.contract.lake import read_lake
from tributary.local.pipeline import down, up
from tributary.local.state import StateFolder

# test_mariadb.py proves the same without `long`, and tests/connectors tries every statement on a MySQL.
pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

LAKE = """
[lake]
name = "mysql"

[source.shop]
engine = "mysql"
tables = ["shop.*"]
partitions = 2

[source.shop.connection]
host = "127.0.0.1"
port = {port}
admin_user = "{admin}"
admin_password_env = "TRIBUTARY_TESTS_MYSQL_PASSWORD"
"""


def open_session(server: MySqlServer) -> Session:
    session: Session = server.connect()
    session.select_db("shop")
    return session


@pytest.fixture(scope="module")
def mysql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BinlogLake]:
    """A pipeline whose database already had rows when it was first read. The connection is encrypted."""
    folder = tmp_path_factory.mktemp("mysql")
    lake_file, state = folder / "lake.toml", StateFolder(folder / "state")
    with running_mysql(folder / "database") as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("TRIBUTARY_TESTS_MYSQL_PASSWORD", server.admin_password)
        lake_file.write_text(LAKE.format(port=server.port, admin=ADMIN) + LAKE_TABLES)
        with server.connect() as session:
            execute(session, "CREATE DATABASE shop")
            set_up(session, VALUES)
            has_cascades = read_server(session).logs_cascades
        try:
            up(read_lake(lake_file), state)
            yield BinlogLake(
                lake_file,
                state.path,
                session=lambda: open_session(server),
                values=VALUES,
                # The log and a snapshot write the same document with other white space.
                not_compared={"spot", "document"},
                left_out={"in_memory", *(() if has_cascades else {"child"})},
            )
        finally:
            down(state)
            shutil.rmtree(state.path, ignore_errors=True)


def test_the_lake_equals_mysql_after_every_type_and_random_transactions_with_ddl(mysql: BinlogLake) -> None:
    check_types_and_transactions(mysql)


def test_a_snapshot_and_the_log_give_the_same_values(mysql: BinlogLake) -> None:
    check_same_values_from_snapshot_and_log(mysql)

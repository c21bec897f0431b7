"""Real servers of MySQL and MariaDB are prepared, checked, and watched for changes without an event."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.engines.binlog.catalog import read_log_status, read_tables
from connectors.engines.binlog.names import connector_user, signal_table
from connectors.engines.binlog.preflight import ServerNotReady
from connectors.engines.binlog.preparation import setup_script
from connectors.engines.binlog.prepared_check import missing_preparation_query
from connectors.engines.binlog.session import Session, execute, rows_of
from connectors.engines.definitions import silent_changes
from connectors.engines.engine import NotConnected
from stacks.functions import database_check
from stacks.functions.database_check.main import NotPrepared, _query
from tests.connectors.conftest import BinlogServer
from tests.connectors.deployments import local_deployment
from tributary.artifacts.pip import LAMBDA, fetch_wheels
from tributary.contract.table_name import TableName

pytestmark = pytest.mark.slow

PASSWORD = "a-Password-1"


@pytest.fixture
def admin(binlog_server: BinlogServer) -> Iterator[Session]:
    with binlog_server.log_in_as_admin() as session:
        execute(session, "CREATE DATABASE IF NOT EXISTS shop")
        session.select_db("shop")
        yield session
        execute(session, "DROP DATABASE shop")


def test_a_prepared_user_has_all_it_needs_and_no_more(binlog_server: BinlogServer, admin: Session) -> None:
    lake, source = binlog_server.lake(), binlog_server.source()
    execute(admin, "CREATE TABLE orders (id int PRIMARY KEY)")
    execute(admin, "CREATE DATABASE IF NOT EXISTS secret")
    for _ in range(2):
        binlog_server.engine.prepare(admin, lake, source, PASSWORD, ())
    with binlog_server.log_in(connector_user(lake, source), PASSWORD) as session:
        binlog_server.engine.check_prepared(session, lake, source, ())
        grants = " ".join(str(next(iter(row.values()))) for row in rows_of(session, "SHOW GRANTS"))
        databases = {next(iter(row.values())) for row in rows_of(session, "SHOW DATABASES")}
    assert "SUPER" not in grants
    assert "ALL PRIVILEGES" not in grants
    assert "secret" not in databases
    assert binlog_server.engine.check(admin, lake, source).left_out == ()


def test_the_check_of_a_deployment_finds_what_is_missing_until_the_script_has_run(
    binlog_server: BinlogServer, admin: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wheel in fetch_wheels(Path(database_check.__path__[0]) / "requirements.txt", LAMBDA):
        monkeypatch.setattr(sys, "path", [*sys.path, str(wheel)])
    lake = binlog_server.lake().model_copy(update={"name": "other"})
    source = binlog_server.source()
    user = connector_user(lake, source)
    execute(admin, f"CREATE USER '{user}'@'%' IDENTIFIED BY '{PASSWORD}'")
    with binlog_server.log_in(user, PASSWORD) as session:
        missing = {row["problem"] for row in rows_of(session, missing_preparation_query(lake, source))}
    assert any(signal_table(lake, source) in one for one in missing)
    for statement in setup_script(lake, source).split(";\n"):
        lines = [line for line in statement.splitlines() if not line.startswith("--")]
        if lines:
            execute(admin, "\n".join(lines))
    with binlog_server.log_in(user, PASSWORD) as session:
        assert rows_of(session, missing_preparation_query(lake, source)) == []
    server = {"Driver": "pymysql", "Host": "127.0.0.1", "SslMode": "required", "Remedy": "Run web.sql."}
    asked = {
        **server,
        "Port": str(binlog_server.port),
        "User": user,
        "Query": "SELECT 1 FROM dual WHERE 1 = 0",
    }
    if binlog_server.has_encryption:
        assert list(_query(asked, PASSWORD)) == []
    else:
        with pytest.raises(NotPrepared, match=r"cannot log in: .*SSL.*Run web\.sql"):
            _query(asked, PASSWORD)


def test_a_user_is_told_all_that_it_lacks(binlog_server: BinlogServer, admin: Session) -> None:
    lake = binlog_server.lake()
    execute(admin, f"CREATE USER plain IDENTIFIED BY '{PASSWORD}'")
    try:
        with binlog_server.log_in("plain", PASSWORD) as session, pytest.raises(ServerNotReady) as raised:
            binlog_server.engine.check_prepared(session, lake, binlog_server.source(), ())
    finally:
        execute(admin, "DROP USER plain")
    for missing in ("RELOAD", "REPLICATION SLAVE", "no database shop"):
        assert missing in str(raised.value)


def test_a_wrong_password_names_the_server_and_not_the_password(binlog_server: BinlogServer) -> None:
    with pytest.raises(NotConnected, match="Access denied") as raised:
        binlog_server.log_in("nobody", PASSWORD)
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize(
    ("change", "is_seen"),
    [
        ("ALTER TABLE t ADD COLUMN c int NOT NULL DEFAULT 7", True),
        ("ALTER TABLE t ADD COLUMN c varchar(9) DEFAULT 'NULL'", True),
        ("ALTER TABLE t ADD COLUMN c varchar(9) DEFAULT NULL", False),
        ("ALTER TABLE t RENAME COLUMN a TO x", True),
        ("ALTER TABLE t MODIFY a bigint", True),
        ("RENAME TABLE t TO gone, other TO t", True),
        ("TRUNCATE TABLE t", True),
        ("ALTER TABLE parts EXCHANGE PARTITION p0 WITH TABLE t", True),
        ("ALTER TABLE parts TRUNCATE PARTITION p0", True),
        ("INSERT INTO t VALUES (5, 5)", False),
        ("ANALYZE TABLE t", False),
    ],
)
def test_what_changes_rows_without_an_event_is_seen_in_the_catalog(
    binlog_server: BinlogServer, admin: Session, change: str, is_seen: bool
) -> None:
    lake, source = binlog_server.lake(), binlog_server.source()
    for name in ("t", "other"):
        execute(admin, f"CREATE TABLE {name} (id int PRIMARY KEY, a int)")
        execute(admin, f"INSERT INTO {name} VALUES (1, 1)")
    execute(
        admin,
        "CREATE TABLE parts (id int PRIMARY KEY, a int) PARTITION BY RANGE (id) "
        "(PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)",
    )
    before = binlog_server.engine.read_definitions(admin, lake, source)
    execute(admin, change)
    now = binlog_server.engine.read_definitions(admin, lake, source)

    seen = {t.table for t in before.keys() & now.keys() if silent_changes(before[t], now[t]) is not None}

    assert bool(seen) == is_seen
    assert "parts" in seen or "parts" not in change


def test_a_table_that_a_user_may_not_see_is_told_from_one_that_is_gone(
    binlog_server: BinlogServer, admin: Session
) -> None:
    lake, source = binlog_server.lake(), binlog_server.source()
    database = source.patterns.include[0].schema
    for name in ("t", "other"):
        execute(admin, f"CREATE TABLE {name} (id int PRIMARY KEY)")
    known = binlog_server.engine.read_definitions(admin, lake, source)
    execute(admin, "DROP TABLE other")
    t, other = (TableName(source.name, database, name) for name in ("t", "other"))
    assert binlog_server.engine.unseen(admin, known) == frozenset()
    execute(admin, f"CREATE USER reader@'%' IDENTIFIED BY '{PASSWORD}'")
    try:
        with binlog_server.log_in("reader", PASSWORD) as reader:
            assert binlog_server.engine.read_definitions(reader, lake, source) == {}
            assert binlog_server.engine.unseen(reader, known) == {t, other}
        execute(admin, f"GRANT SELECT ON `{database}`.* TO reader@'%'")
        with binlog_server.log_in("reader", PASSWORD) as reader:
            assert binlog_server.engine.read_definitions(reader, lake, source).keys() == {t}
            assert binlog_server.engine.unseen(reader, known) == frozenset()
    finally:
        execute(admin, "DROP USER reader@'%'")


def test_the_tables_of_mariadb_that_stop_its_connector_are_left_out(
    binlog_server: BinlogServer, admin: Session
) -> None:
    if binlog_server.key != "mariadb":
        pytest.skip("MySQL has no such tables")
    execute(admin, "CREATE SEQUENCE numbers")
    execute(admin, "CREATE TABLE versions (id int PRIMARY KEY, a int) WITH SYSTEM VERSIONING")
    execute(admin, "CREATE TABLE plain (id int PRIMARY KEY)")
    lake, source = binlog_server.lake(), binlog_server.source()

    left_out = binlog_server.engine.check_tables(admin, lake, source).left_out

    assert [one.table.table for one in left_out] == ["numbers", "versions"]
    untaken = [one.table for one in left_out]
    taken = binlog_server.engine.render(lake, source, local_deployment(lake), untaken).config[
        "table.include.list"
    ]
    names = ("shop.numbers", "shop.versions", "shop.plain")
    assert [name for name in names if re.fullmatch(taken, name)] == ["shop.plain"]


def test_a_child_table_is_taken_if_and_only_if_the_log_has_cascaded_changes(
    binlog_server: BinlogServer, admin: Session
) -> None:
    execute(admin, "CREATE TABLE parent (id int PRIMARY KEY)")
    execute(
        admin,
        "CREATE TABLE child (id int PRIMARY KEY, p int, "
        "FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
    )
    execute(admin, "INSERT INTO parent VALUES (1)")
    execute(admin, "INSERT INTO child VALUES (1, 1)")
    start = int(read_log_status(admin)["Position"])
    execute(admin, "DELETE FROM parent")
    file = read_log_status(admin)["File"]
    events = [
        str(row["Event_type"]) for row in rows_of(admin, f"SHOW BINLOG EVENTS IN '{file}' FROM {start}")
    ]
    deletes = sum(one.startswith("Delete_rows") for one in events)

    left_out = binlog_server.engine.check_tables(admin, binlog_server.lake(), binlog_server.source()).left_out

    assert [one.table.table for one in left_out] == ({1: ["child"], 2: []}[deletes])


def test_the_connectors_user_sees_the_foreign_keys_that_change_rows(
    binlog_server: BinlogServer, admin: Session
) -> None:
    patterns = '["kids-1.*"]'
    engine, lake, source = binlog_server.engine, binlog_server.lake(patterns), binlog_server.source(patterns)
    engine.prepare(admin, lake, source, PASSWORD, ())
    execute(admin, "CREATE DATABASE `kids-1`")
    try:
        execute(admin, "CREATE TABLE `kids-1`.parent (id int PRIMARY KEY)")
        rules = ("ON DELETE CASCADE", "ON DELETE SET NULL", "ON UPDATE CASCADE", "ON UPDATE SET NULL", "")
        for name, rule in zip(("Enfant-é", "日本 x", "c", "d$", "kept"), rules, strict=True):
            key = f"FOREIGN KEY (p) REFERENCES `kids-1`.parent (id) {rule}"
            execute(admin, f"CREATE TABLE `kids-1`.`{name}` (id int PRIMARY KEY, p int, {key})")
        with binlog_server.log_in(connector_user(lake, source), PASSWORD) as session:
            found = {one.table: one.cascades for one in read_tables(session) if one.schema == "kids-1"}
    finally:
        execute(admin, "DROP DATABASE `kids-1`")
    assert {name for name, cascades in found.items() if cascades} == {"Enfant-é", "日本 x", "c", "d$"}
    assert "ON DELETE SET NULL ON UPDATE " in found["日本 x"][0]


def test_prepared_transactions_are_told(binlog_server: BinlogServer, admin: Session) -> None:
    engine, lake, source = binlog_server.engine, binlog_server.lake(), binlog_server.source()
    execute(admin, "CREATE TABLE t (id int PRIMARY KEY)")
    with binlog_server.log_in_as_admin() as other:
        for statement in ("START 'x'", "END 'x'", "PREPARE 'x'"):
            execute(other, f"XA {statement}")
            if statement.startswith("START"):
                execute(other, "INSERT INTO shop.t VALUES (1)")
    try:
        told = "\n".join(engine.check_server(admin, lake, source))
    finally:
        execute(admin, "XA ROLLBACK 'x'")
    later = "\n".join(engine.check_server(admin, lake, source))

    assert "1 transactions are prepared by XA, and not committed yet" in told
    assert "not committed yet" not in later
    assert "Applications use XA" in later

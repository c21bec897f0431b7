"""A server or a table that Debezium cannot read without loss is found, and told with what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from connectors.engines.binlog.catalog import ServerFacts, TableFacts
from connectors.engines.binlog.names import MAX_USER, connector_user, server_id
from connectors.engines.binlog.preflight import (
    ServerNotReady,
    _warnings_of_server,
    judge_existing,
    judge_server,
    judge_tables,
)
from connectors.engines.binlog.progress import steps_to_kafka
from connectors.engines.engine import UnknownTable
from connectors.engines.mariadb.engine import MariaDbEngine
from connectors.engines.mysql.engine import MySqlEngine
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.lake import Lake, parse_lake
from tributary.contract.table_name import TableName

PASSWORD = "a-Password-1"
UUID, NEW_UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "8a94f357-aab4-11df-86ab-c80aa9429489"
MARIADB, MYSQL = MariaDbEngine(), MySqlEngine()
GOOD = {
    "version": "11.4.5-MariaDB-log",
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_legacy_event_pos": "ON",
    "server_id": "1",
}


def lake_of(engine: str = "mariadb", tables: str = '["shop.*"]', more: str = "") -> Lake:
    return parse_lake(
        f'[lake]\nname = "shop-lake"\n[source.web]\nengine = "{engine}"\ntables = {tables}\n'
        f'[source.web.connection]\nhost = "h"\nadmin_user = "root"\nadmin_password_env = "P"\n'
        f'ssl_mode = "disabled"\n{more}'
    )


def source_of(lake: Lake) -> BinlogSource:
    source = lake.source("web")
    assert isinstance(source, BinlogSource)
    return source


def server(**changes: Any) -> ServerFacts:
    variables = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    return ServerFacts(release=variables["version"], variables=variables)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"log_bin": "OFF"}, "no binary log"),
        ({"binlog_format": "MIXED"}, "binlog_format = MIXED"),
        ({"binlog_row_image": "MINIMAL"}, "binlog_row_image = MINIMAL"),
        ({"binlog_legacy_event_pos": "OFF"}, "binlog_legacy_event_pos = OFF"),
        ({"log_bin_compress": "ON"}, "log_bin_compress = ON"),
        ({"server_id": "0"}, "server_id = 0"),
        ({"version": "10.5.1-MariaDB"}, "MariaDB 10.5.1"),
        ({"version": "8.4.3"}, "a MySQL server"),
    ],
)
def test_a_setting_that_loses_changes_stops_the_start(changes: dict[str, str], found: str) -> None:
    lake = lake_of()
    with pytest.raises(ServerNotReady, match=found) as raised:
        judge_server(lake, source_of(lake), server(**changes), MARIADB.rules)
    assert raised.value.remedies


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"binlog_row_value_options": "PARTIAL_JSON"}, "binlog_row_value_options = PARTIAL_JSON"),
        ({"binlog_transaction_compression": "ON"}, "binlog_transaction_compression = ON"),
        ({"version": "5.7.44-log"}, "MySQL 5.7.44"),
        ({"version": "11.4.5-MariaDB"}, 'a MariaDB server.*engine = "mariadb"'),
        ({"gtid_mode": "ON_PERMISSIVE", "gtid_executed": f"{UUID}:1-9"}, "gtid_mode = ON_PERMISSIVE"),
        ({"gtid_mode": "OFF", "gtid_executed": f"{UUID}:1-9"}, "gtid_mode = OFF, and transactions with"),
    ],
)
def test_a_setting_of_mysql_that_loses_changes_stops_the_start(changes: dict[str, str], found: str) -> None:
    lake = lake_of("mysql")
    with pytest.raises(ServerNotReady, match=found):
        judge_server(lake, source_of(lake), server(**{"version": "8.4.3", **changes}), MYSQL.rules)


def test_a_replica_with_the_number_of_the_connector_stops_the_start() -> None:
    lake = lake_of()
    number = server_id(lake, source_of(lake))
    others = replace(server(), replicas=frozenset({2, 3}))
    judge_server(lake, source_of(lake), others, MARIADB.rules)
    with pytest.raises(ServerNotReady, match=f"a replica with server_id = {number}") as raised:
        judge_server(lake, source_of(lake), replace(others, replicas=frozenset({2, number})), MARIADB.rules)
    assert "not in SHOW REPLICAS" in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "is_warned"),
    [
        ({"version": "8.4.3", "gtid_mode": "OFF"}, True),
        ({"version": "8.4.3", "gtid_mode": "ON"}, False),
        ({}, False),
    ],
)
def test_a_server_without_gtids_is_warned_of_failovers(changes: dict[str, str], is_warned: bool) -> None:
    told = "\n".join(_warnings_of_server(server(**changes)))
    assert ("take a new snapshot after each failover" in told) == is_warned


def test_all_faults_of_a_server_are_told_at_once() -> None:
    lake = lake_of()
    faults = {"binlog_format": "STATEMENT", "binlog_row_image": "MINIMAL"}
    with pytest.raises(ServerNotReady) as raised:
        judge_server(lake, source_of(lake), server(**faults), MARIADB.rules)
    assert "binlog_row_image = MINIMAL" in str(raised.value)


def test_a_server_without_a_newer_setting_is_taken() -> None:
    lake = lake_of()
    older = server(version="10.11.6-MariaDB", binlog_legacy_event_pos=None)
    judge_server(lake, source_of(lake), older, MARIADB.rules)
    in_lake = lake_of("mysql")
    judge_server(in_lake, source_of(in_lake), server(version="8.0.36"), MYSQL.rules)


@pytest.mark.parametrize(
    "facts",
    [replace(server(), only=frozenset({"other"})), replace(server(), ignored=frozenset({"shop"}))],
    ids=["only others are", "it is left out"],
)
def test_a_database_that_is_not_in_the_log_stops_the_start(facts: ServerFacts) -> None:
    lake = lake_of()
    with pytest.raises(ServerNotReady, match="the database shop left out of the log"):
        judge_server(lake, source_of(lake), facts, MARIADB.rules)


def table(**changes: Any) -> TableFacts:
    facts: dict[str, Any] = {
        "schema": "shop",
        "table": "orders",
        "engine": "InnoDB",
        "types": {"id": "int", "note": "text"},
        "not_null": frozenset({"id"}),
        "primary_key": frozenset({"id"}),
        "unique_keys": (frozenset({"id"}),),
    }
    return TableFacts(**{**facts, **changes})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"engine": "MEMORY"}, "does not tell when its rows vanish"),
        ({"primary_key": frozenset()}, "nothing identifies its rows"),
        ({"cascades": ("fk, ON DELETE CASCADE",)}, "the binary log does not have such changes"),
        ({"types": {"id": "int", "ä": "int"}}, "a lake table cannot have a column with this name"),
        ({"types": {"id": "float"}}, "the lake would keep one row for two"),
        (
            {"types": {"id": "int", "a": "text"}, "charsets": {"a": "cp932"}},
            "found the column a, text CHARACTER SET cp932",
        ),
        (
            {"types": {"id": "int", "a": "enum"}, "charsets": {"a": "utf16"}},
            "found the column a, enum CHARACTER SET utf16",
        ),
        ({"kind": "SEQUENCE"}, "found a sequence"),
        ({"kind": "SYSTEM VERSIONED"}, "found a system-versioned table"),
    ],
)
def test_a_table_that_cannot_be_exact_is_left_out(changes: dict[str, Any], reason: str) -> None:
    lake = lake_of()
    found = judge_tables(
        lake, source_of(lake), [table(**changes), table(table="good")], server(), MARIADB.rules
    )
    (left_out,) = found.left_out
    assert left_out.table == TableName("web", "shop", "orders")
    assert reason in " ".join(map(str, left_out.problems))


def test_later_tables_are_judged_although_a_pattern_has_lost_its_table() -> None:
    lost = lake_of(tables='["shop.*", "sales.dropped"]')
    facts = [table(engine="MEMORY"), table(table="good")]
    with pytest.raises(ServerNotReady, match=r"sales\.dropped"):
        judge_tables(lost, source_of(lost), facts, server(), MARIADB.rules)
    (left_out,) = judge_existing(lost, source_of(lost), facts, server(), MARIADB.rules)
    assert left_out.table.table == "orders"


@pytest.mark.parametrize(
    ("found", "is_taken"),
    [(None, False), ("ON", False), ("OFF", True)],
    ids=["before 9.6", "as before", "9.6"],
)
def test_a_child_table_is_taken_where_the_log_has_cascaded_changes(found: str | None, is_taken: bool) -> None:
    facts = server(version="9.7.4", innodb_native_foreign_keys=found)
    child = table(cascades=("fk, ON DELETE CASCADE",))
    lake = lake_of("mysql")
    left_out = judge_tables(lake, source_of(lake), [child], facts, MYSQL.rules).left_out
    assert (left_out == ()) == is_taken


def test_a_column_whose_characters_come_out_wrong_may_be_left_out_and_some_are_warned_of() -> None:
    facts = table(types={"id": "int", "a": "text", "b": "text"}, charsets={"a": "koi8u", "b": "cp866"})
    lake = lake_of(more='[table."web.shop.orders"]\nleave_out = ["a"]\n')
    checked = judge_tables(lake, source_of(lake), [facts], server(), MARIADB.rules)
    assert checked.left_out == ()
    (warning,) = checked.warnings
    assert "cp866" in warning
    assert "shop.orders.b" in warning


NO_ZEROS = "STRICT_TRANS_TABLES,NO_ZERO_DATE"


@pytest.mark.parametrize(
    ("sql_mode", "is_warned"),
    [("", True), ("STRICT_TRANS_TABLES", True), ("NO_ZERO_DATE", True), (NO_ZEROS, False)],
)
def test_zero_dates_are_warned_of_where_they_cannot_be_null(sql_mode: str, is_warned: bool) -> None:
    lake = lake_of()
    facts = table(types={"id": "int", "made": "date", "seen": "datetime"}, not_null=frozenset({"id", "made"}))
    warnings = judge_tables(lake, source_of(lake), [facts], server(sql_mode=sql_mode), MARIADB.rules).warnings
    assert bool(warnings) == is_warned
    assert not warnings or ("shop.orders.made." in warnings[0] and "seen" not in warnings[0])


def test_invalid_dates_are_warned_of() -> None:
    (warning,) = _warnings_of_server(server(sql_mode="STRICT_TRANS_TABLES,ALLOW_INVALID_DATES"))
    assert "stops the connector" in warning
    assert list(_warnings_of_server(server(sql_mode=NO_ZEROS))) == []


def test_mysqls_cp932_is_taken() -> None:
    lake = lake_of("mysql")
    facts = table(types={"id": "int", "a": "text"}, charsets={"a": "cp932"})
    assert judge_tables(lake, source_of(lake), [facts], server(), MYSQL.rules).left_out == ()


def test_a_key_of_the_lake_file_has_to_be_unique() -> None:
    lake = lake_of(more='[table."web.shop.orders"]\nkey = ["note"]\n')
    facts = table(primary_key=frozenset())
    (left_out,) = judge_tables(lake, source_of(lake), [facts], server(), MARIADB.rules).left_out
    assert "does not identify a row" in str(left_out.problems[0])
    unique = table(unique_keys=(frozenset({"note"}),), not_null=frozenset({"id", "note"}))
    assert judge_tables(lake, source_of(lake), [unique], server(), MARIADB.rules).left_out == ()


def test_a_type_that_debezium_cannot_parse_stops_the_start_in_any_table_of_the_database() -> None:
    lake = lake_of(tables='["shop.orders"]')
    other = table(table="other", types={"id": "int", "ip": "inet6"})
    with pytest.raises(ServerNotReady, match=r"shop\.other\.ip \(inet6\)"):
        judge_tables(lake, source_of(lake), [table(), other], server(), MARIADB.rules)
    elsewhere = table(schema="else", table="other", types={"ip": "inet6"})
    assert judge_tables(lake, source_of(lake), [table(), elsewhere], server(), MARIADB.rules).left_out == ()


def test_a_pattern_without_a_table_is_told_with_the_name_that_differs_in_case() -> None:
    lake = lake_of(tables='["shop.Orders"]')
    with pytest.raises(ServerNotReady, match=r"did you mean shop\.orders"):
        judge_tables(lake, source_of(lake), [table()], server(), MARIADB.rules)


def test_the_names_in_a_server_fit_and_differ() -> None:
    long = lake_of().model_copy(update={"name": "a" * 40})
    user = connector_user(long, source_of(lake_of()))
    assert len(user) == MAX_USER
    assert user != connector_user(long.model_copy(update={"name": "a" * 41}), source_of(lake_of()))
    numbers = {server_id(lake_of().model_copy(update={"name": name}), source_of(lake_of())) for name in "abc"}
    assert len(numbers) == 3
    assert all(2**31 <= number < 2**32 for number in numbers)


def test_kafka_has_everything_once_the_offset_has_passed_the_end_of_the_log() -> None:
    lake = lake_of()
    said: list[str] = []
    ends = [{"File": "binlog.000009", "Position": 500}]
    offsets: list[Any] = [None, {"snapshot": "INITIAL", "file": "binlog.000010", "pos": 4}]
    session: Any = SimpleNamespace(cursor=lambda *_: FakeCursor(said, {"LOG STATUS": ends}))

    def read_offset() -> Any:
        return offsets[-1]

    snapshot, log = steps_to_kafka(session, lake, source_of(lake), read_offset)
    assert "snapshot still runs" in str(snapshot.lacking())
    offsets.append({"file": "binlog.000009", "pos": 499})
    assert snapshot.lacking() is None
    assert "up to file 9, byte 499" in str(log.lacking())
    offsets.append({"file": "binlog.000010", "pos": 4})
    assert log.lacking() is None
    assert "heartbeat" in said[-1]


def test_with_gtids_kafka_has_everything_once_the_offset_has_all_of_the_servers() -> None:
    lake = lake_of("mysql")
    said: list[str] = []
    answers: dict[str, list[dict[str, Any]]] = {
        "LOG STATUS": [{"File": "binlog.000002", "Position": 500}],
        "GLOBAL VARIABLES": [
            {"Variable_name": "gtid_mode", "Value": "ON"},
            {"Variable_name": "gtid_executed", "Value": f"{UUID}:1-9,\n{NEW_UUID}:1-2"},
            {"Variable_name": "gtid_purged", "Value": ""},
        ],
    }
    offset = {"file": "binlog.000020", "pos": 4, "gtids": f"{UUID}:1-9"}
    session: Any = SimpleNamespace(cursor=lambda *_: FakeCursor(said, answers))

    _, log = steps_to_kafka(session, lake, source_of(lake), lambda: offset)

    # The numbers of the old server's files are higher.
    assert log.lacking() == f"Debezium has not read the transactions {NEW_UUID}:1-2"
    offset = {"file": "binlog.000002", "pos": 400, "gtids": f"{UUID}:1-9,{NEW_UUID}:1-2"}
    assert log.lacking() is None


class FakeCursor:
    """Answers a statement with the rows of the first words that it has."""

    def __init__(self, said: list[str], answers: Mapping[str, list[dict[str, Any]]]) -> None:
        self.said, self.answers = said, answers

    def __enter__(self) -> FakeCursor:
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute(self, statement: str, _: object) -> None:
        self.said.append(statement)

    def fetchall(self) -> list[dict[str, Any]]:
        return next((rows for words, rows in self.answers.items() if words in self.said[-1]), [])


# With a real server.


@pytest.mark.parametrize(
    ("failure", "unknown"),
    [
        (
            "DebeziumException: Encountered change event for table shop.no whose schema isn't known to this "
            "connector",
            UnknownTable("shop", "no"),
        ),
        (
            "DebeziumException: Error processing row in versions, internal schema size 2, but row size 4 , "
            "restart connector with schema recovery mode",
            UnknownTable(None, "versions"),
        ),
        ("EOFException: Failed to read next byte from position 10067", None),
    ],
)
def test_a_connector_s_failure_names_the_table_that_it_does_not_know(
    failure: str, unknown: UnknownTable | None
) -> None:
    assert MariaDbEngine().unknown_table(failure) == unknown
    has_remedy = any(words in failure for words in MariaDbEngine().remedies())
    assert has_remedy == (unknown is not None)

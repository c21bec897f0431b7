"""The function that prepares Aurora MySQL: its very SQL on a real server, which is a MariaDB.

MariaDB lacks Amazon's procedure for the binary log, so the test creates one of that name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pymysql
import pytest
from pydantic import SecretStr

from connectors.engines.binlog.names import HEARTBEAT_TABLE, OWN_DATABASE, connector_user, signal_table
from connectors.engines.binlog.preparation import heartbeat_statement
from connectors.engines.binlog.session import Session, execute, rows_of
from connectors.engines.engine import Login, NotConnected
from connectors.engines.mariadb.engine import MariaDbEngine
from stacks.database.mysql.engine import preparation
from stacks.functions.bootstrap.mysql import MySqlPreparation, serve
from stacks.functions.bootstrap.requests import Services
from tests.connectors import conftest as server_fixtures
from tests.stacks.data_api import refusal
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.lake import Lake, parse_lake
from tributary.local import mariadb
from tributary.local.mariadb import MariaDbServer

pytestmark = pytest.mark.slow

maria = server_fixtures.maria

PASSWORD = "Replication0Password"
CLUSTER = "arn:aws:rds:us-east-1:111122223333:cluster:tributary-shop-orders"
MARIADB = MariaDbEngine()


class Context:
    log_stream_name = "a-log-stream"

    def get_remaining_time_in_millis(self) -> int:
        return 900_000


@dataclass
class DataApiOnMariaDb:
    """boto3's client `rds-data`. `failures` are raised first; `statements` were run."""

    open: Callable[[], Session]
    failures: list[Exception] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)

    def execute_statement(self, **request: Any) -> Mapping[str, Any]:
        assert set(request) == {"resourceArn", "secretArn", "database", "sql"}
        statement = request["sql"]
        if self.failures:
            raise self.failures.pop(0)
        # The Data API reads a colon as a parameter, and takes one statement at a time.
        assert ":" not in statement
        assert ";" not in statement
        self.statements.append(statement)
        with self.open() as session, session.cursor() as cursor:
            try:
                cursor.execute(statement)
                rows = cursor.fetchall() or []
            except pymysql.Error as error:
                raise refusal(
                    "DatabaseErrorException",
                    f"Database error code: {error.args[0]}. Message: {error.args[1]}",
                ) from None
        return {"records": [[{"stringValue": str(row[0])}] for row in rows]}

    def begin_transaction(self, **_: Any) -> Mapping[str, Any]:
        raise AssertionError("MySQL commits these statements one by one")

    commit_transaction = rollback_transaction = begin_transaction


@dataclass
class Function:
    data_api: DataApiOnMariaDb
    answers: list[Mapping[str, Any]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    passwords: list[str] = field(default_factory=list)

    def asked(self, kind: str, wanted: MySqlPreparation, before: MySqlPreparation | None = None) -> Any:
        properties = {
            "Cluster": CLUSTER,
            "Database": "mysql",
            "AdminSecret": "an-admin-secret",
            "ReplicationSecret": "a-replication-secret",
        }
        event: dict[str, Any] = {
            "RequestType": kind,
            "ResponseURL": "https://example.org/presigned",
            "StackId": "a-stack",
            "RequestId": "a-request",
            "LogicalResourceId": "OrdersPrepared",
            "PhysicalResourceId": "what CloudFormation knows it as",
            "ResourceProperties": {**properties, "Preparation": wanted.to_json()},
        }
        if before is not None:
            event["OldResourceProperties"] = {**properties, "Preparation": before.to_json()}
        services = Services(
            self.data_api,
            rds=None,  # type: ignore[arg-type]  # no parameter is set
            read_password=lambda _: self.passwords.pop(0) if self.passwords else PASSWORD,
            answer=lambda _, body: self.answers.append(json.loads(body)),
            sleep=self.slept.append,
        )
        serve(event, Context(), services)
        return self.answers[-1]


@pytest.fixture
def admin(maria: MariaDbServer) -> Iterator[Session]:
    with _log_in(maria, mariadb.ADMIN, maria.admin_password) as session:
        # The procedure records what it gets.
        execute(session, "CREATE DATABASE shop")
        execute(session, "CREATE TABLE shop.configured (name varchar(100), hours int)")
        execute(
            session,
            "CREATE OR REPLACE PROCEDURE mysql.rds_set_configuration(name varchar(100), hours int) "
            "INSERT INTO shop.configured VALUES (name, hours)",
        )
        yield session
        execute(session, "DROP DATABASE shop")


@pytest.fixture
def function(maria: MariaDbServer, admin: Session) -> Function:  # noqa: ARG001
    return Function(DataApiOnMariaDb(lambda: _log_in(maria, mariadb.ADMIN, maria.admin_password)))


def _log_in(maria: MariaDbServer, user: str, password: str) -> Session:
    login = Login("127.0.0.1", maria.port, user, SecretStr(password))
    session = MARIADB.connect(_source(_lake()), login)
    assert isinstance(session, pymysql.Connection)
    return session


def _lake(name: str = "shop", source: str = "orders") -> Lake:
    return parse_lake(
        f'[lake]\nname = "{name}"\n[source.{source}]\nengine = "mysql"\ntables = ["shop.*", "!shop.audit"]'
    )


def _source(lake: Lake) -> BinlogSource:
    (source,) = lake.sources
    assert isinstance(source, BinlogSource)
    return source


def _prepared(lake: Lake, hours: int = 72) -> MySqlPreparation:
    return preparation(lake, _source(lake), hours)


def _tables(admin: Session) -> set[str]:
    query = f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{OWN_DATABASE}'"
    return {str(row["TABLE_NAME"]) for row in rows_of(admin, query)}


def test_debezium_s_user_has_what_it_needs_and_the_log_is_kept(
    function: Function, admin: Session, maria: MariaDbServer
) -> None:
    lake = _lake()
    for _ in range(2):
        answer = function.asked("Create", _prepared(lake))
        assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", f"{CLUSTER}/mysql")
        assert answer["Data"] == {"Remarks": "the server keeps its binary log for 72 hours"}
    execute(admin, "CREATE TABLE shop.orders (id int PRIMARY KEY)")
    with _log_in(maria, connector_user(lake, _source(lake)), PASSWORD) as session:
        assert rows_of(session, "SELECT count(*) AS n FROM shop.orders") == [{"n": 0}]
        execute(session, heartbeat_statement(lake, _source(lake)))
        grants = " ".join(str(next(iter(row.values()))) for row in rows_of(session, "SHOW GRANTS"))
    assert "REPLICATION SLAVE" in grants
    assert "ALL PRIVILEGES" not in grants
    assert rows_of(admin, "SELECT DISTINCT name, hours FROM shop.configured") == [
        {"name": "binlog retention hours", "hours": 72}
    ]


def test_a_password_that_rotates_during_a_deployment_does_not_come_back(
    function: Function, maria: MariaDbServer
) -> None:
    lake = _lake()
    function.passwords = ["Former0Password"]
    assert function.asked("Create", _prepared(lake))["Status"] == "SUCCESS"
    _log_in(maria, connector_user(lake, _source(lake)), PASSWORD).close()
    with pytest.raises(NotConnected):
        _log_in(maria, connector_user(lake, _source(lake)), "Former0Password")


def test_a_cluster_that_starts_is_waited_for(function: Function) -> None:
    function.data_api.failures = [refusal("DatabaseUnavailableException", "starting")] * 3
    assert function.asked("Create", _prepared(_lake()))["Status"] == "SUCCESS"
    assert len(function.slept) == 3


def test_a_refused_statement_fails_the_deployment_in_the_server_s_words(function: Function) -> None:
    wanted = MySqlPreparation("'u'@'%'", ("CREATE TABLE nowhere.t (id int)",), (), 1)
    answer = function.asked("Create", wanted)
    assert answer["Status"] == "FAILED"
    assert "Unknown database 'nowhere'" in answer["Reason"]


def test_the_password_is_in_no_answer_and_in_no_log(
    function: Function, capsys: pytest.CaptureFixture[str]
) -> None:
    function.asked("Create", _prepared(_lake()))
    assert PASSWORD not in capsys.readouterr().out + json.dumps(function.answers)
    assert sum(PASSWORD in statement for statement in function.data_api.statements) == 1


def test_what_belongs_to_the_source_goes_and_the_rest_stays(
    function: Function, admin: Session, maria: MariaDbServer
) -> None:
    mine, other = _lake(), _lake("lab", "tests")
    for lake in (mine, other):
        function.asked("Create", _prepared(lake))
        execute(admin, heartbeat_statement(lake, _source(lake)))
    assert function.asked("Delete", _prepared(mine))["Status"] == "SUCCESS"
    assert _tables(admin) == {HEARTBEAT_TABLE, signal_table(other, _source(other))}
    assert rows_of(admin, f"SELECT lake FROM {OWN_DATABASE}.{HEARTBEAT_TABLE}") == [{"lake": "lab"}]
    with pytest.raises(NotConnected):
        _log_in(maria, connector_user(mine, _source(mine)), PASSWORD)
    with _log_in(maria, connector_user(other, _source(other)), PASSWORD):
        pass
    function.asked("Delete", _prepared(other))


def test_a_stack_can_be_deleted_whatever_has_become_of_its_database(function: Function) -> None:
    function.data_api.failures = [refusal("ForbiddenException", "no such secret")] * 1_000
    assert function.asked("Delete", _prepared(_lake()))["Status"] == "SUCCESS"


def test_a_user_that_another_one_follows_goes(function: Function, maria: MariaDbServer) -> None:
    before, after = _lake(), _lake("shop", "sales")
    function.asked("Create", _prepared(before))
    function.asked("Update", _prepared(after), before=_prepared(before))
    with pytest.raises(NotConnected):
        _log_in(maria, connector_user(before, _source(before)), PASSWORD)
    with _log_in(maria, connector_user(after, _source(after)), PASSWORD):
        pass
    for lake in (after, before):
        function.asked("Delete", _prepared(lake))

"""The function that prepares SQL Servers: what it runs, what it tells, and what it never tells.

It runs against a double of the server. The last tests have the real driver and the deployed asset."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from stacks.database.sqlserver.prepared_instance import preparation, write_code
from stacks.functions.sqlserver_bootstrap import server as server_module
from stacks.functions.sqlserver_bootstrap.main import AGE, UNRECORDED, Outside, serve
from stacks.functions.sqlserver_bootstrap.preparation import SqlServerPreparation
from stacks.functions.sqlserver_bootstrap.server import NotReady, Server
from tests.connectors.test_sqlserver_session import PASSWORD as TRUSTED_PASSWORD
from tests.connectors.test_sqlserver_session import REQUIRED, certificate_for, serving
from tests.stacks.sqlserver_double import ADMIN, ADMIN_PASSWORD, NO_ANSWER, SqlServer, refusal
from tributary.contract.engines.sqlserver import RdsSqlServer, SqlServerSource
from tributary.contract.lake import Lake, parse_lake

PASSWORD = "Replication0Password"
SECRETS = {"an-admin-secret": ADMIN_PASSWORD, "a-replication-secret": PASSWORD}
INSTANCE = "arn:aws:rds:us-east-1:111122223333:db:tributary-shop-erp"
HOST = "tributary-shop-erp.abc.us-east-1.rds.amazonaws.com"


class Context:
    log_stream_name = "a-log-stream"

    def get_remaining_time_in_millis(self) -> int:
        return 900_000


@dataclass
class Function:
    """The function beside its server. `answers` went to CloudFormation, `metrics` to CloudWatch."""

    server: SqlServer
    answers: list[Mapping[str, Any]] = field(default_factory=list)
    metrics: list[tuple[str, Sequence[Mapping[str, Any]]]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    now: float = 0.0
    secrets: dict[str, str] = field(default_factory=lambda: dict(SECRETS))
    denials: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server.spend = self._spend

    def asked(
        self, kind: str, wanted: SqlServerPreparation, before: SqlServerPreparation | None = None
    ) -> Mapping[str, Any]:
        properties = {
            **_of_server(),
            "Cluster": INSTANCE,
            "Database": wanted.database,
            "ReplicationSecret": "a-replication-secret",
        }
        event: dict[str, Any] = {
            "RequestType": kind,
            "ResponseURL": "https://example.org/presigned",
            "StackId": "a-stack",
            "RequestId": "a-request",
            "LogicalResourceId": "ErpPrepared",
            "PhysicalResourceId": "what CloudFormation knows it as",
            "ResourceProperties": {**properties, "Preparation": wanted.to_json()},
        }
        if before is not None:
            event["OldResourceProperties"] = {**properties, "Preparation": before.to_json()}
        serve(event, Context(), self._outside())
        return self.answers[-1]

    def scheduled(self, wanted: SqlServerPreparation) -> dict[str, float]:
        of_lake = {"Namespace": "Tributary", "Lake": "shop", "Source": "erp"}
        event = {**_of_server(), **of_lake, "Preparation": wanted.to_json()}
        serve(event, Context(), self._outside())
        namespace, metrics = self.metrics[-1]
        assert namespace == "Tributary"
        for metric in metrics:
            assert metric["Dimensions"] == [
                {"Name": "Lake", "Value": "shop"},
                {"Name": "Source", "Value": "erp"},
            ]
        return {metric["MetricName"]: metric["Value"] for metric in metrics}

    def _read_password(self, secret: str) -> str:
        if self.denials:
            code = self.denials.pop(0)
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "GetSecretValue")
        return self.secrets[secret]

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._spend(seconds)

    def _spend(self, seconds: float) -> None:
        self.now += seconds

    def _outside(self) -> Outside:
        return Outside(
            send=lambda namespace, metrics: self.metrics.append((namespace, metrics)),
            read_password=self._read_password,
            answer=lambda _, body: self.answers.append(json.loads(body)),
            open=self.server.open,
            sleep=self._sleep,
            clock=lambda: self.now,
        )


def _of_server() -> dict[str, str]:
    return {
        "Host": HOST,
        "Port": "1433",
        "SslMode": "verified",
        "AdminUser": ADMIN,
        "AdminSecret": "an-admin-secret",
    }


def _lake(source: str = "erp", database: str = "ERP") -> Lake:
    return parse_lake(
        f'[lake]\nname = "shop"\n[source.{source}]\nengine = "sqlserver"\ndatabase = "{database}"\n'
        'tables = ["dbo.*"]\n'
    )


def _prepared(lake: Lake | None = None, **settings: Any) -> SqlServerPreparation:
    of = lake or _lake()
    (source,) = of.sources
    assert isinstance(source, SqlServerSource)
    return preparation(of, source, RdsSqlServer(**settings))


@pytest.fixture
def function() -> Function:
    return Function(SqlServer(_prepared()))


def test_a_new_instance_gets_the_database_cdc_and_a_user_who_can_log_in(function: Function) -> None:
    wanted, server = _prepared(), function.server
    answer = function.asked("Create", wanted)
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", f"{INSTANCE}/ERP")
    assert answer["Data"] == {"Remarks": "a table that is created later is recorded within a minute"}
    assert "ERP" in server.databases
    assert server.is_cdc_on
    assert server.has_snapshot_isolation
    assert server.logins[wanted.user] == PASSWORD
    assert server.recorded.keys() == set(wanted.own_tables)
    assert server.sessions == 0


def test_a_password_that_rotates_during_a_deployment_does_not_come_back(function: Function) -> None:
    login, wanted = function.server.preparation.login, _prepared()
    rotated = login.replace("<password>", PASSWORD)

    def rotate(_: float) -> None:
        if any(batch == rotated for _, batch in function.server.ran):
            function.secrets["a-replication-secret"] = "Another0Password"

    function.server.spend = rotate
    assert function.asked("Create", wanted)["Status"] == "SUCCESS"
    assert function.server.logins[wanted.user] == "Another0Password"


def test_the_batches_run_in_the_order_in_which_sql_server_needs_them(function: Function) -> None:
    wanted = _prepared()
    function.asked("Create", wanted)
    *before, login = function.server.batches_of(ADMIN)
    assert before == [
        wanted.creation,
        *wanted.opening,
        *wanted.setup,
        wanted.capture,
        wanted.unrecorded,
        *wanted.afterwards,
    ]
    assert PASSWORD in login
    assert function.server.batches_of(wanted.user) == [wanted.missing]


def test_preparing_again_changes_nothing_and_sets_no_password(function: Function) -> None:
    wanted = _prepared()
    for _ in range(2):
        assert function.asked("Update", wanted)["Status"] == "SUCCESS"
    assert sum(PASSWORD in batch for _, batch in function.server.ran) == 1
    assert all(len(instances) == 1 for instances in function.server.recorded.values())


def test_a_new_password_in_the_secret_is_set(function: Function) -> None:
    function.asked("Create", _prepared())
    function.secrets["a-replication-secret"] = "Another0Password"
    assert function.asked("Update", _prepared())["Status"] == "SUCCESS"
    assert function.server.logins[_prepared().user] == "Another0Password"


def test_every_session_is_encrypted_and_verified_by_the_roots_of_amazon_rds(function: Function) -> None:
    function.asked("Create", _prepared())
    function.scheduled(_prepared())
    for opened in function.server.opened:
        assert (opened["host"], opened["port"], opened["is_encrypted"]) == (HOST, 1433, True)
        assert opened["ca_file"] == str(server_module.ROOTS)


def test_a_server_that_starts_or_recovers_is_waited_for(function: Function) -> None:
    function.server.failures = [NO_ANSWER, refusal(922, "Database 'ERP' is being recovered."), NO_ANSWER]
    function.server.is_locked = 1
    assert function.asked("Create", _prepared())["Status"] == "SUCCESS"
    assert len(function.slept) == 4


def test_a_login_that_stays_refused_fails_the_deployment_in_the_server_s_words(function: Function) -> None:
    function.server.logins[ADMIN] = "something else"
    answer = function.asked("Create", _prepared())
    assert answer["Status"] == "FAILED"
    assert answer["Reason"] == "NotReady: Login failed for user 'lakeadmin'."
    assert 20 <= function.now <= 30


def test_a_login_while_the_administrator_s_secret_rotates_is_tried_again(function: Function) -> None:
    refused = refusal(18456, "Login failed for user 'lakeadmin'.")
    # The server has been away for longer than a rotation takes.
    function.server.failures = [*[NO_ANSWER] * 20, refused, refused]
    assert function.asked("Create", _prepared())["Status"] == "SUCCESS"
    assert len(function.slept) == 22


@pytest.mark.parametrize("kind", ["Create", "Delete"])
def test_a_policy_that_takes_effect_late_is_waited_for(function: Function, kind: str) -> None:
    function.denials = ["AccessDeniedException"] * 20
    assert function.asked(kind, _prepared())["Status"] == "SUCCESS"
    assert function.denials == []
    assert function.server.sessions == 0


def test_a_secret_that_stays_denied_or_is_gone_fails_the_deployment(function: Function) -> None:
    function.denials = ["AccessDeniedException"] * 1_000
    answer = function.asked("Create", _prepared())
    assert (answer["Status"], answer["Reason"].partition(":")[0]) == ("FAILED", "NotReady")
    assert 110 <= function.now <= 120
    function.denials, before = ["ResourceNotFoundException"], function.now
    assert function.asked("Create", _prepared())["Status"] == "FAILED"
    assert function.now == before


@pytest.mark.parametrize("kind", ["Create", "Update", "Delete"])
def test_cloudformation_gets_an_answer_before_the_function_s_time_is_over(
    function: Function, kind: str
) -> None:
    wanted = _prepared()
    function.asked("Create", wanted)
    function.now = 0
    batches = (*wanted.setup, wanted.capture, *wanted.afterwards, *wanted.removal)
    function.server.slow = dict.fromkeys(batches, 290.0)
    answer = function.asked(kind, wanted)
    assert answer["Status"] == ("SUCCESS" if kind == "Delete" else "FAILED")
    assert function.now <= 870
    assert function.server.sessions == 0


def test_what_debezium_s_user_finds_missing_fails_the_deployment(function: Function) -> None:
    function.server.missing = ["the user is not a member of the role tributary_reader"]
    answer = function.asked("Create", _prepared())
    assert answer["Status"] == "FAILED"
    assert "tributary_shop__erp finds: the user is not a member of the role" in answer["Reason"]


def test_a_table_that_cdc_refuses_does_not_stop_the_others_nor_the_deployment(function: Function) -> None:
    function.server.tables = {"dbo.orders": 1, "dbo.odd": 1, "dbo.pairs": 1}
    function.server.unfit = {"dbo.odd": "The table has a column of a kind that cannot be captured."}
    answer = function.asked("Create", _prepared())
    assert answer["Status"] == "SUCCESS"
    assert "not recorded: dbo.odd" in answer["Data"]["Remarks"]
    assert "a kind that cannot be captured" in answer["Data"]["Remarks"]
    assert {"dbo.orders", "dbo.pairs"} <= function.server.recorded.keys()


def test_a_database_whose_own_tables_are_not_recorded_fails_the_deployment(function: Function) -> None:
    function.server.unfit = {"tributary.heartbeat": "SQL Server Agent is not running."}
    answer = function.asked("Create", _prepared())
    assert answer["Status"] == "FAILED"
    assert "does not record tributary.heartbeat: tributary.heartbeat: SQL Server Agent" in answer["Reason"]


def test_a_password_that_could_end_a_literal_is_not_sent(function: Function) -> None:
    function.secrets["a-replication-secret"] = "x'; DROP LOGIN y --"
    answer = function.asked("Create", _prepared())
    assert answer["Status"] == "FAILED"
    assert "other than letters and digits" in answer["Reason"]
    assert function.server.ran == []


@pytest.mark.parametrize("fails", [False, True])
def test_no_password_is_in_an_answer_a_log_or_a_metric(
    function: Function, capsys: pytest.CaptureFixture[str], fails: bool
) -> None:
    if fails:
        function.server.failures = [refusal(15118, "Password validation failed.")]
    function.asked("Create", _prepared())
    if not fails:
        function.scheduled(_prepared())
    told = capsys.readouterr().out + json.dumps(function.answers) + json.dumps(function.metrics)
    assert PASSWORD not in told
    assert ADMIN_PASSWORD not in told


def test_a_new_and_a_changed_table_are_recorded_within_a_minute(
    function: Function, capsys: pytest.CaptureFixture[str]
) -> None:
    function.server.tables = {"dbo.orders": 1}
    function.asked("Create", _prepared())
    capsys.readouterr()
    function.server.tables |= {"dbo.orders": 2, "dbo.new": 1}
    assert function.scheduled(_prepared()) == {UNRECORDED: 0, AGE: 30}
    assert function.server.recorded["dbo.orders"] == [1, 2]
    assert function.server.recorded["dbo.new"] == [1]
    assert "recorded from now on: dbo.new, dbo.orders" in capsys.readouterr().out


def test_a_look_that_finds_nothing_new_changes_nothing(function: Function) -> None:
    function.asked("Create", _prepared())
    function.server.ran.clear()
    function.scheduled(_prepared())
    looked = [_prepared().is_cdc_on, _prepared().unrecorded, _prepared().age]
    assert function.server.batches_of(ADMIN) == looked


def test_a_database_that_was_restored_is_prepared_again(
    function: Function, capsys: pytest.CaptureFixture[str]
) -> None:
    function.server.tables = {"dbo.orders": 1}
    function.asked("Create", _prepared())
    function.server.is_cdc_on = False
    function.server.recorded.clear()
    assert function.scheduled(_prepared())[UNRECORDED] == 0
    assert function.server.recorded["dbo.orders"] == [1]
    assert "the database is prepared again" in capsys.readouterr().out


def test_a_table_with_two_old_instances_is_counted_and_told_but_not_touched(
    function: Function, capsys: pytest.CaptureFixture[str]
) -> None:
    function.server.tables = {"dbo.orders": 3}
    function.asked("Create", _prepared())
    function.server.recorded["dbo.orders"] = [1, 2]
    function.server.ran.clear()
    assert function.scheduled(_prepared())[UNRECORDED] == 1
    assert _prepared().capture not in function.server.batches_of(ADMIN)
    assert "dbo.orders: it has two capture instances" in capsys.readouterr().out


def test_a_table_that_cdc_refuses_is_counted(function: Function, capsys: pytest.CaptureFixture[str]) -> None:
    function.asked("Create", _prepared())
    function.server.tables = {"dbo.odd": 1}
    function.server.unfit = {"dbo.odd": "No."}
    assert function.scheduled(_prepared()) == {UNRECORDED: 1, AGE: 30}
    assert "dbo.odd: No." in capsys.readouterr().out


def test_a_capture_job_that_has_recorded_nothing_yet_has_no_age(function: Function) -> None:
    function.asked("Create", _prepared())
    function.server.seconds = None
    assert function.scheduled(_prepared()) == {UNRECORDED: 0}


def test_a_look_at_a_server_that_is_away_fails_without_a_metric(function: Function) -> None:
    function.asked("Create", _prepared())
    function.server.failures = [NO_ANSWER] * 1_000
    with pytest.raises(NotReady, match="Unable to connect"):
        function.scheduled(_prepared())
    assert function.metrics == []
    assert function.now <= 20


def test_what_belongs_to_the_source_goes_and_the_database_stays(function: Function) -> None:
    wanted = _prepared()
    function.asked("Create", wanted)
    answer = function.asked("Delete", wanted)
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "what CloudFormation knows it as")
    assert "ERP" in function.server.databases
    assert wanted.user not in function.server.logins
    assert function.server.users == set()
    assert function.server.recorded == {}


def test_a_stack_can_be_deleted_whatever_has_become_of_its_database(function: Function) -> None:
    function.server.failures = [NO_ANSWER] * 1_000
    assert function.asked("Delete", _prepared())["Status"] == "SUCCESS"
    function.server.failures = []
    function.server.logins.clear()
    assert function.asked("Delete", _prepared())["Status"] == "SUCCESS"


def test_a_user_whose_session_ends_late_goes_too(function: Function) -> None:
    wanted = _prepared()
    function.asked("Create", wanted)
    reached, batches = [None], [None] * (len(wanted.removal) - 1)
    busy = refusal(15434, "Could not drop login as the user is currently logged in.")
    function.server.failures = [*reached, *batches, busy, busy]
    function.asked("Delete", wanted)
    assert wanted.user not in function.server.logins


def test_a_user_that_another_one_follows_goes_and_its_tables_stay(function: Function) -> None:
    before, after = _prepared(), _prepared(_lake("sales"))
    function.asked("Create", before)
    server = function.server = SqlServer(
        after, databases={"ERP"}, is_cdc_on=True, logins=dict(function.server.logins), former=before
    )
    server.databases |= {"master"}
    assert function.asked("Update", after, before=before)["Status"] == "SUCCESS"
    assert before.user not in server.logins
    assert server.logins[after.user] == PASSWORD
    ended = [batch for batch in server.batches_of(ADMIN) if batch in before.removal]
    assert ended == list(before.removal[-2:])


def test_another_database_keeps_its_login_when_the_former_resource_is_deleted(function: Function) -> None:
    before, after = _prepared(), _prepared(_lake(database="ERP2"))
    function.asked("Create", before)
    server = function.server
    function.server = SqlServer(
        after, databases=server.databases, logins=server.logins, users=server.users, former=before
    )
    assert function.asked("Update", after, before=before)["Status"] == "SUCCESS"
    assert function.asked("Delete", before)["Status"] == "SUCCESS"
    assert server.users == {("ERP2", after.user)}
    assert server.logins[after.user] == PASSWORD
    function.asked("Delete", after)
    assert after.user not in server.logins


def test_the_sql_survives_cloudformation() -> None:
    wanted = _prepared()
    assert wanted.to_json().isascii()
    assert SqlServerPreparation.from_json(wanted.to_json()) == wanted


def test_changes_are_kept_as_long_as_the_lake_file_says_and_on_the_standby_too() -> None:
    assert "@retention = 4320" in _prepared().afterwards[-1]
    here, there = _prepared(changes_kept="7d", standby=True).afterwards[-2:]
    assert "@retention = 10080" in here
    assert "rds_set_configuration 'cdc_cleanup_retention', 10080" in there


def test_the_real_driver_sends_the_password_only_to_a_server_that_the_roots_vouch_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = certificate_for(tmp_path, "own"), certificate_for(tmp_path, "other")
    for roots, is_trusted in ((own, True), (other, False)):
        monkeypatch.setattr(server_module, "ROOTS", roots)
        with serving(REQUIRED, own) as listening:
            server = Server("127.0.0.1", listening.port, is_verified=True)
            with pytest.raises(NotReady) as told, server.session(ADMIN, TRUSTED_PASSWORD, "master"):
                pass
        assert listening.got_encrypted_login == is_trusted, listening.failures
        assert TRUSTED_PASSWORD not in str(told.value)


def test_the_function_starts_from_what_its_asset_holds(tmp_path: Path) -> None:
    write_code(tmp_path)
    # The wheels are for Lambda's machine. This one has its own driver, outside of the project.
    for wheel in tmp_path.glob("pymssql*"):
        wheel.rename(tmp_path / f"lambda-{wheel.name}")
    check = (
        "import stacks.functions.sqlserver_bootstrap.main as m;"
        "import stacks.functions.sqlserver_bootstrap.server as s;"
        "import connectors.engines.sqlserver.session as c; print(m.__file__, c.__file__, s.ROOTS.is_file())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", check],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    main, session, has_roots = ran.stdout.split()
    assert main.startswith(str(tmp_path))
    assert session.startswith(str(tmp_path))
    assert has_roots == "True"
    assert list(tmp_path.glob("lambda-pymssql*"))
    modules = {each.name for each in (tmp_path / "stacks/functions/bootstrap").iterdir()}
    assert modules == {"__init__.py", "answers.py"}

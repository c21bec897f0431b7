"""What the bootstrap function answers, how long it waits for what, and that its asset is all it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.stub import Stubber

from connectors.engines.postgres.preparation import removal_statements, setup_statements
from stacks.database import bootstrap_function
from stacks.database.postgres import prepared_database
from stacks.functions.bootstrap import demo
from stacks.functions.bootstrap.data_api import DataApi, StatementFailed, patiently
from stacks.functions.bootstrap.main import serve
from stacks.functions.bootstrap.preparation import Preparation
from stacks.functions.bootstrap.requests import Services
from tests.postgres_source import postgres_source
from tributary.contract.lake import Lake, parse_lake

CLUSTER = "arn:aws:rds:us-east-1:111122223333:cluster:tributary-shop-web"
PASSWORD = "Replication0Password"


class Context:
    log_stream_name = "a-log-stream"

    def get_remaining_time_in_millis(self) -> int:
        return 900_000


class Refusing:
    """A Data API that refuses everything with the same error, a number of times, and then has no rows."""

    def __init__(self, error: Exception | None, times: float = float("inf")) -> None:
        self.error, self.times, self.asked = error, times, 0
        self.begun: list[str] = []
        self.ended: list[str] = []

    def begin_transaction(self, **_: Any) -> Mapping[str, Any]:
        self.begun.append("begun")
        return {"transactionId": "one"}

    def commit_transaction(self, **_: Any) -> Mapping[str, Any]:
        self.ended.append("committed")
        return {}

    def rollback_transaction(self, **_: Any) -> Mapping[str, Any]:
        self.ended.append("rolled back")
        return {}

    def execute_statement(self, **_: Any) -> Mapping[str, Any]:
        self.asked += 1
        if self.error is not None and self.asked <= self.times:
            raise self.error
        return {"records": []}


class Parameters:
    """A cluster's parameter group. `refusals` are raised first, in turn."""

    def __init__(self, *refusals: Exception) -> None:
        self.refusals, self.asked = list(refusals), list[Mapping[str, Any]]()

    def modify_db_cluster_parameter_group(self, **request: Any) -> None:
        self.asked.append(request)
        if self.refusals:
            raise self.refusals.pop(0)


def refusal(code: str, message: str = "") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "ExecuteStatement")


def answer_of(
    kind: str,
    client: Refusing,
    slept: list[float] | None = None,
    text: str | None = None,
    parameters: Parameters | None = None,
) -> Mapping[str, Any]:
    answers: list[Mapping[str, Any]] = []
    event = {
        "RequestType": kind,
        "ResponseURL": "https://example.org/presigned",
        "StackId": "a-stack",
        "RequestId": "a-request",
        "LogicalResourceId": "WebPrepared",
        "PhysicalResourceId": "what CloudFormation knows it as",
        "ResourceProperties": {
            "Cluster": CLUSTER,
            "Database": "shop",
            "AdminSecret": "an-admin-secret",
            "ReplicationSecret": "a-replication-secret",
            "ParameterGroup": "parameters",
            "SlotMegabytes": "20480",
            "Preparation": prepared().to_json() if text is None else text,
        },
    }
    services = Services(
        client,
        parameters if parameters is not None else Parameters(),
        read_password=lambda _: PASSWORD,
        answer=lambda _, body: answers.append(json.loads(body)),
        sleep=(slept if slept is not None else []).append,
    )
    serve(event, Context(), services)
    (answer,) = answers
    return answer


def lake_of(tables: str = '["public.*", "!public.audit"]', more: str = "") -> Lake:
    return parse_lake(
        '[lake]\nname = "shop"\n[source.web]\nengine = "postgres"\n'
        f'database = "webshop"\ntables = {tables}\n{more}'
    )


def prepared(lake: Lake | None = None) -> Preparation:
    lake = lake or lake_of()
    return prepared_database.preparation(lake, postgres_source(lake), has_demo=False)


@pytest.mark.parametrize(
    "lake",
    [
        lake_of(),
        lake_of('["a:b.c:d?", "sa:les.*", "!sa:les.:x"]'),
        lake_of(
            more='[source.web.connection]\nhost = "h"\nuser = "de:bezium"\npassword_env = "P"\n',
        ),
    ],
)
def test_no_statement_holds_what_the_data_api_takes_for_a_parameter_or_a_second_statement(lake: Lake) -> None:
    source = postgres_source(lake)
    content = prepared(lake)
    statements = [
        *setup_statements(lake, source),
        *removal_statements(lake, source),
        content.unpublished,
        content.patterns_without_table,
    ]
    assert [statement for statement in statements if {":", "?"} & set(statement)] == []
    assert [statement for statement in statements if statement.rstrip().endswith(";")] == []


def test_what_the_function_is_told_survives_cloudformation_which_loses_what_is_not_ascii() -> None:
    content = prepared(lake_of('["łódź.*"]'))
    assert content.to_json().isascii()
    assert Preparation.from_json(content.to_json()) == content


def test_requests_are_those_that_the_data_api_knows() -> None:
    client = boto3.client("rds-data", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    where = {"resourceArn": CLUSTER, "secretArn": "a-secret-s-arn"}
    with Stubber(client) as stub:
        stub.add_response("begin_transaction", {"transactionId": "one"}, {**where, "database": "shop"})
        stub.add_response(
            "execute_statement",
            {"records": [[{"stringValue": "a"}], [{"isNull": True}], [{"longValue": 3}]]},
            {
                **where,
                "database": "shop",
                "sql": "SELECT :x",
                "transactionId": "one",
                "parameters": [{"name": "x", "value": {"stringValue": "y"}}],
            },
        )
        stub.add_response("commit_transaction", {}, {**where, "transactionId": "one"})
        with DataApi(client, CLUSTER, "a-secret-s-arn", "shop").transaction() as transaction:
            assert transaction.run("SELECT :x", x="y") == ["a", None, "3"]
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    "error",
    [
        refusal("DatabaseUnavailableException"),
        refusal("HttpEndpointNotEnabledException"),
        refusal("DatabaseErrorException", "FATAL: password authentication failed; SQLState: 28P01"),
        refusal("DatabaseErrorException", "FATAL: the database system is starting up; SQLState: 57P03"),
        refusal("StatementTimeoutException"),
        EndpointConnectionError(endpoint_url="https://rds-data"),
    ],
)
def test_a_cluster_that_is_not_ready_is_waited_for(error: Exception) -> None:
    slept: list[float] = []
    assert answer_of("Create", Refusing(error, times=3), slept)["Status"] == "SUCCESS"
    assert slept == [5, 5, 5]


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "ForbiddenException", "DatabaseUnavailableException"]
)
def test_what_never_gets_ready_is_given_up_in_time(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def sleep(seconds: float) -> None:
        now[0] += seconds

    def fail() -> None:
        raise refusal(code)

    with pytest.raises(ClientError):
        patiently(fail, seconds=600, tell=lambda _: None, sleep=sleep)
    assert now[0] == (600 if code.startswith("Database") else 120)


def test_a_refused_statement_is_not_tried_again() -> None:
    slept: list[float] = []
    client = Refusing(refusal("DatabaseErrorException", "ERROR: permission denied; SQLState: 42501"))
    answer = answer_of("Create", client, slept)
    assert answer["Status"] == "FAILED"
    assert answer["Reason"] == "StatementFailed: ERROR: permission denied; SQLState: 42501"
    assert client.ended == ["rolled back"]
    assert slept == []


def test_an_answer_names_the_database_and_not_the_request() -> None:
    answer = answer_of("Create", Refusing(None))
    assert answer == {
        "Status": "SUCCESS",
        "Reason": "see the log stream a-log-stream",
        "PhysicalResourceId": f"{CLUSTER}/shop",
        "StackId": "a-stack",
        "RequestId": "a-request",
        "LogicalResourceId": "WebPrepared",
        "Data": {"Remarks": "every pattern has its tables"},
    }


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_failure_is_answered_in_plain_words_that_fit(kind: str) -> None:
    message = f"ERROR: \x1b[31m „{'x' * 9000}“\n; SQLState: 42501"
    answer = answer_of(kind, Refusing(refusal("DatabaseErrorException", "SQLState: 42501; " + message)))
    assert answer["Status"] == "FAILED"
    assert answer["Reason"].isprintable()
    assert answer["Reason"].isascii()
    assert len(json.dumps(answer)) < 4096


def test_even_a_request_that_makes_no_sense_is_answered() -> None:
    assert answer_of("Create", Refusing(None), text="no JSON")["Status"] == "FAILED"


@pytest.mark.parametrize("text", [None, "no JSON"])
@pytest.mark.parametrize(
    "error",
    [
        refusal("DatabaseNotFoundException", "no such cluster"),
        refusal("NoSuchSecretException"),
        refusal("DatabaseErrorException", "ERROR: role is in use; SQLState: 2BP01"),
        ValueError("anything"),
    ],
)
def test_a_stack_can_be_deleted_whatever_has_become_of_its_database(
    error: Exception, text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stacks.functions.bootstrap.main.DELETE_SECONDS", 0)
    answer = answer_of("Delete", Refusing(error), text=text)
    assert answer["Status"] == "SUCCESS"
    assert answer["PhysicalResourceId"] == "what CloudFormation knows it as"


def test_neither_password_nor_verifier_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    class Failing(Refusing):
        def execute_statement(self, **request: Any) -> Mapping[str, Any]:
            if "PASSWORD" in request["sql"]:
                raise refusal("DatabaseErrorException", "ERROR: permission denied; SQLState: 42501")
            return {"records": []}

    answer = answer_of("Create", Failing(None))
    assert answer["Status"] == "FAILED"
    told = json.dumps(answer) + capsys.readouterr().out
    assert PASSWORD not in told
    assert "SCRAM" not in told


def test_no_request_with_the_demo_s_rows_is_too_large_for_the_data_api() -> None:
    sizes: list[int] = []

    class Counting(Refusing):
        def execute_statement(self, **request: Any) -> Mapping[str, Any]:
            sizes.append(len(json.dumps(request)))
            return {"records": [[{"longValue": 0}]]}

    database = DataApi(Counting(None), CLUSTER, "a-secret", "shop")
    assert demo.write_tickit(database, 0.1, tell=lambda _: None)
    assert max(sizes) < 2 * 1024 * 1024
    assert len(sizes) < 50


def test_the_function_starts_from_what_its_asset_holds(tmp_path: Path) -> None:
    bootstrap_function._write_code(tmp_path)
    check = "import stacks.functions.bootstrap.mysql, stacks.functions.bootstrap.main as m; print(m.__file__)"
    without_project = {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", check],
        cwd=tmp_path,
        env=os.environ | without_project,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip().startswith(str(tmp_path))


def test_a_refusal_of_the_statement_is_told_in_the_database_s_words() -> None:
    client = Refusing(refusal("DatabaseErrorException", "ERROR: no; SQLState: 42P01"))
    with pytest.raises(StatementFailed, match=r"^ERROR: no; SQLState: 42P01$"):
        DataApi(client, CLUSTER, "a-secret", "shop").run("SELECT 1")


def test_a_slot_may_hold_back_as_much_log_as_the_lake_file_says() -> None:
    parameters = Parameters(refusal("AccessDenied"), refusal("InvalidDBParameterGroupState"))
    assert answer_of("Create", Refusing(None), parameters=parameters)["Status"] == "SUCCESS"
    client = boto3.client("rds", "us-east-1")
    for request in parameters.asked:
        with Stubber(client) as stub:
            stub.add_response("modify_db_cluster_parameter_group", {}, request)
            client.modify_db_cluster_parameter_group(**request)
    assert parameters.asked[-1]["Parameters"][0]["ParameterValue"] == "20480"
    assert len(parameters.asked) == 3


def test_an_aurora_without_such_a_limit_is_a_remark() -> None:
    answer = answer_of("Create", Refusing(None), parameters=Parameters(refusal("InvalidParameterValue")))
    assert answer["Status"] == "SUCCESS"
    assert "max_slot_wal_keep_size" in answer["Data"]["Remarks"]


def test_another_refusal_of_the_limit_fails_the_deployment() -> None:
    answer = answer_of("Create", Refusing(None), parameters=Parameters(refusal("DBParameterGroupNotFound")))
    assert answer["Status"] == "FAILED"

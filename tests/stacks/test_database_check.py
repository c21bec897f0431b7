"""The check of an existing database fails the deployment with what is missing and how to prepare it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from stacks.functions.database_check.main import Services, serve

PROPERTIES = {
    "Host": "webshop.example.org",
    "Port": "5432",
    "Database": "webshop",
    "User": "tributary_shop__web",
    "Secret": "arn:aws:secretsmanager:eu-west-1:111122223333:secret:webshop-AbCdEf",
    "SslMode": "require",
    "Query": "SELECT …",
    "Script": "1",
    "Remedy": "An administrator runs: psql -f cdk.out/web.sql. Then deploy again.",
}


def answered(request: str, query: Callable[[Mapping[str, str], str], list[str]]) -> Mapping[str, Any]:
    """What CloudFormation gets."""
    answers: list[bytes] = []
    event = {
        "RequestType": request,
        "ResourceProperties": PROPERTIES,
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "Checked",
        "ResponseURL": "https://answer.example.org",
    }
    services = Services(
        read_password=lambda _: "secret",
        query=query,
        answer=lambda _, body: answers.append(body),
        sleep=lambda _: None,
    )
    serve(event, services)
    (answer,) = answers
    found: Mapping[str, Any] = json.loads(answer)
    return found


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_a_prepared_database_lets_the_deployment_go_on(request_type: str) -> None:
    assert answered(request_type, lambda *_: [])["Status"] == "SUCCESS"


def test_what_is_missing_fails_the_deployment_and_names_the_sql() -> None:
    answer = answered("Create", lambda *_: ["no publication tributary_shop__web"])
    assert answer["Status"] == "FAILED"
    assert "no publication tributary_shop__web" in answer["Reason"]
    assert "cdk.out/web.sql" in answer["Reason"]
    assert "secret" not in answer["Reason"]


def test_a_new_network_interface_gets_a_minute() -> None:
    waits = iter([TimeoutError("timed out"), ConnectionRefusedError("refused")])

    def query(*_: object) -> list[str]:
        for error in waits:
            raise error
        return []

    assert answered("Create", query)["Status"] == "SUCCESS"


def test_a_database_that_never_answers_is_told_with_its_address() -> None:
    def query(*_: object) -> list[str]:
        raise TimeoutError("timed out")

    answer = answered("Create", query)
    assert answer["Status"] == "FAILED"
    assert "webshop on webshop.example.org:5432" in answer["Reason"]
    assert "security group" in answer["Reason"]


def test_a_check_is_removed_without_asking_the_database() -> None:
    def query(*_: object) -> list[str]:
        raise AssertionError("asked")

    assert answered("Delete", query)["Status"] == "SUCCESS"

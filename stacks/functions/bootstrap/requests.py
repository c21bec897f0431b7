"""Answer the requests of CloudFormation to prepare a database, whatever happens.

Without an answer, CloudFormation waits for an hour, so the function answers in every case.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import boto3

from stacks.functions.bootstrap.data_api import DataApi, RdsData
from stacks.functions.bootstrap.slot_limit import Rds

Event = Mapping[str, Any]

DELETE_SECONDS = 120.0
_RESERVE_SECONDS = 30.0
"""The part of the function's time that is kept for the answer."""
_MAX_TEXT = 1000
"""Characters of a reason or a remark. CloudFormation accepts 4,096 bytes in all."""


class Context(Protocol):
    """The part of Lambda's context that this module uses."""

    log_stream_name: str

    def get_remaining_time_in_millis(self) -> int: ...


@dataclass(frozen=True)
class Services:
    """The services outside of the function.

    read_password  returns the password in the secret with this ARN
    answer         puts a text to a URL
    """

    rds_data: RdsData
    rds: Rds
    read_password: Callable[[str], str]
    answer: Callable[[str, bytes], None]
    sleep: Callable[[float], None] = time.sleep


Perform = Callable[[Event, float, Services], str]
"""Does what a request asks for, within so many seconds, and returns remarks for a person."""


def answer(event: Event, context: Context, services: Services, perform: Perform) -> None:
    """Do what a request asks for, and answer CloudFormation. A request to delete never fails."""
    seconds = context.get_remaining_time_in_millis() / 1000 - _RESERVE_SECONDS
    try:
        remarks, failure = perform(event, seconds, services), None
    except Exception as error:  # noqa: BLE001
        remarks, failure = "", _plain(f"{type(error).__name__}: {error}")
        print(failure)
    if failure is not None and event["RequestType"] == "Delete":
        print("the database cannot be reached, so nothing is left to remove")
        failure = None
    _send(event, context, services, remarks, failure)


def database_of(properties: Mapping[str, str], services: Services) -> DataApi:
    return DataApi(
        services.rds_data, properties["Cluster"], properties["AdminSecret"], properties["Database"]
    )


def _send(event: Event, context: Context, services: Services, remarks: str, failure: str | None) -> None:
    properties = event["ResourceProperties"]
    body = {
        "Status": "SUCCESS" if failure is None else "FAILED",
        "Reason": failure or f"see the log stream {context.log_stream_name}",
        # With another cluster or database, the id changes, and CloudFormation deletes the former resource.
        "PhysicalResourceId": f"{properties['Cluster']}/{properties['Database']}",
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": {"Remarks": _plain(remarks)},
    }
    if event["RequestType"] == "Delete":
        body["PhysicalResourceId"] = event["PhysicalResourceId"]
    services.answer(event["ResponseURL"], json.dumps(body).encode("ascii"))


def _plain(text: str) -> str:
    """Replace control characters, which would make the stack's events unreadable."""
    return "".join(character if " " <= character <= "~" else " " for character in text)[:_MAX_TEXT]


def aws_services() -> Services:
    secrets_manager = boto3.client("secretsmanager")

    def read_password(secret: str) -> str:
        content = secrets_manager.get_secret_value(SecretId=secret)["SecretString"]
        return str(json.loads(content)["password"])

    return Services(boto3.client("rds-data"), boto3.client("rds"), read_password, _put)


def _put(url: str, body: bytes) -> None:
    """Put an answer to CloudFormation's presigned URL, which is signed without a content type."""
    request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": ""})
    with urllib.request.urlopen(request, timeout=30):
        pass

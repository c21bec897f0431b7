"""Answer the requests of CloudFormation to prepare a database, whatever happens.

Without an answer, CloudFormation waits for an hour, so a function answers in every case.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

Event = Mapping[str, Any]
Result = TypeVar("Result")
Put = Callable[[str, bytes], None]
"""Puts a text to a URL."""

DELETE_SECONDS = 120.0
_RESERVE_SECONDS = 30.0
"""The part of the function's time that is kept for the answer."""
_PUT_SECONDS = 20
_MAX_TEXT = 1000
"""Characters of a reason or a remark. CloudFormation accepts 4,096 bytes in all."""


class Context(Protocol):
    """The part of Lambda's context that this module uses."""

    log_stream_name: str

    def get_remaining_time_in_millis(self) -> int: ...


def seconds_left(context: Context) -> float:
    """Return how long the function may work. The rest of its time is for the answer."""
    return context.get_remaining_time_in_millis() / 1000 - _RESERVE_SECONDS


def with_present(read: Callable[[], str], use: Callable[[str], Result]) -> Result:
    """Use a password, and again if it is another one afterwards: its secret can rotate meanwhile.

    Otherwise a password that was read before the rotation would come back after it.
    """
    password = read()
    while True:
        result, used = use(password), password
        if (password := read()) == used:
            return result
        print("the secret has another password now: the database gets that one")


def answer(event: Event, context: Context, put_to: Put, perform: Callable[[float], str]) -> None:
    """Do what a request asks for, and answer CloudFormation. A request to delete never fails.

    perform  does it within so many seconds, and returns remarks for a person
    """
    try:
        remarks, failure = perform(seconds_left(context)), None
    except Exception as error:  # noqa: BLE001
        remarks, failure = "", _plain(f"{type(error).__name__}: {error}")
        print(failure)
    if failure is not None and event["RequestType"] == "Delete":
        print("the database cannot be reached, so nothing is left to remove")
        failure = None
    _send(event, context, put_to, remarks, failure)


def _send(event: Event, context: Context, put_to: Put, remarks: str, failure: str | None) -> None:
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
    put_to(event["ResponseURL"], json.dumps(body).encode("ascii"))


def _plain(text: str) -> str:
    """Replace control characters, which would make the stack's events unreadable."""
    return "".join(character if " " <= character <= "~" else " " for character in text)[:_MAX_TEXT]


def put(url: str, body: bytes) -> None:
    """Put an answer to CloudFormation's presigned URL, which is signed without a content type."""
    request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": ""})
    with urllib.request.urlopen(request, timeout=_PUT_SECONDS):
        pass

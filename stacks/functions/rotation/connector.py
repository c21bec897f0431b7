"""Restart a connector on MSK Connect, so that its tasks read the password again.

RestartConnector keeps the connector's options and offsets. It needs a connector that is RUNNING, with no
other operation in progress (MSK developer guide, "Restart a connector").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import boto3

MODELS = Path(__file__).with_name("models")
"""MSK Connect's API as this project's botocore knows it. Lambda's own may not have RestartConnector yet."""

_FAILED, _COMPLETE = "RESTART_FAILED", "RESTART_COMPLETE"


class NotNow(Exception):
    """The connector cannot be restarted in its state."""


class RestartFailed(Exception):
    """MSK Connect could not restart the connector."""


class KafkaConnect(Protocol):
    """The part of boto3's client `kafkaconnect` that this module uses."""

    def list_connectors(self, **request: Any) -> Mapping[str, Any]: ...

    def restart_connector(self, **request: Any) -> Mapping[str, Any]: ...

    def describe_connector_operation(self, **request: Any) -> Mapping[str, Any]: ...


def kafka_connect_client() -> Any:
    """Return boto3's client of MSK Connect, with the API in `MODELS`."""
    session = boto3.Session()
    session._loader.search_paths.insert(0, str(MODELS))
    return session.client("kafkaconnect")


@dataclass(frozen=True)
class Connector:
    """A connector, by its name, which no two connectors share."""

    client: KafkaConnect
    name: str

    def find(self) -> str | None:
        """Return the ARN of the connector. None: there is none. Raises NotNow if it does not run."""
        token: dict[str, str] = {}
        while True:
            page = self.client.list_connectors(connectorNamePrefix=self.name, **token)
            for found in page["connectors"]:
                if found["connectorName"] == self.name:
                    if found["connectorState"] != "RUNNING":
                        raise NotNow(f"the connector {self.name} is {found['connectorState']}")
                    return str(found["connectorArn"])
            if not page.get("nextToken"):
                return None
            token = {"nextToken": page["nextToken"]}

    def restart(self, arn: str) -> str:
        """Begin a restart of the connector and its tasks, and return the ARN of the operation."""
        answer = self.client.restart_connector(connectorArn=arn)
        return str(answer["connectorOperationArn"])

    def is_restarted(self, operation: str) -> bool:
        """Tell whether a restart has ended. Raises RestartFailed."""
        found = self.client.describe_connector_operation(connectorOperationArn=operation)
        if found["connectorOperationState"] == _FAILED:
            raise RestartFailed(
                f"{self.name}: {found.get('errorInfo', {}).get('message', 'no reason given')}"
            )
        return bool(found["connectorOperationState"] == _COMPLETE)

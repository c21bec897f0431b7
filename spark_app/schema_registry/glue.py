"""Ask AWS Glue's schema registry."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from spark_app.schema_registry.framing import SchemaId
from spark_app.schema_registry.registry import (
    OtherFraming,
    RegistryAway,
    RegistryRefused,
    SchemaUnknown,
    schema_refused,
)
from tributary.contract.remedies import EditLakeFile

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient
    from mypy_boto3_glue.type_defs import SchemaIdTypeDef

_CHECK_SECONDS = 10.0
"""How long Glue may check a new schema against the earlier ones."""

_NEVER = frozenset(
    {
        "AccessDeniedException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "NotAuthorized",
        "UnrecognizedClientException",
    }
)
"""The errors of Glue that the same credentials get again and again."""


class _Version(TypedDict):
    """A schema's version in an answer of Glue."""

    SchemaVersionId: str
    Status: str


@dataclass(frozen=True)
class GlueRegistry:
    """The registries of an AWS account in a region. A schema version's UUID is unique among all of them.

    `region` is None for the environment's. `endpoint` is the address of a Glue other than AWS's.
    `client` asks it instead of a client with the environment's credentials. `name` is the registry that gets
    new schemas."""

    region: str | None = None
    endpoint: str | None = None
    client: GlueClient | None = None
    name: str | None = None

    def schema(self, schema_id: SchemaId) -> str:
        if schema_id.framing != "uuid":
            raise OtherFraming(str(schema_id))
        try:
            found = self._client.get_schema_version(SchemaVersionId=str(uuid.UUID(schema_id.digits)))
        except ClientError as error:
            raise _failure(error, schema_id) from error
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise _refused(str(error)) from error
        except BotoCoreError as error:
            raise RegistryAway(f"AWS Glue's schema registry does not answer: {error}") from error
        if found.get("DataFormat", "AVRO") != "AVRO":
            raise SchemaUnknown(f"{schema_id} is a schema of {found['DataFormat']}")
        return found["SchemaDefinition"]

    def add(self, topic: str, schema: str) -> SchemaId:
        """Keep the schema as a version of the one with the topic's name, as Glue's converter names it."""
        assert self.name is not None, "new schemas need the name of a registry"
        try:
            found = self._version_of(topic, schema)
            version, status = found["SchemaVersionId"], found.get("Status", "AVAILABLE")
            patience = time.monotonic() + _CHECK_SECONDS
            while status == "PENDING" and time.monotonic() < patience:
                time.sleep(0.2)
                status = self._client.get_schema_version(SchemaVersionId=version)["Status"]
        except ClientError as error:
            raise _failure(error, topic) from error
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise _refused(str(error)) from error
        except BotoCoreError as error:
            raise RegistryAway(f"AWS Glue's schema registry does not answer: {error}") from error
        if status == "PENDING":
            raise RegistryAway(f"AWS Glue's schema registry still checks the schema of {topic}")
        if status != "AVAILABLE":
            raise schema_refused(topic, f"the status {status}")
        return SchemaId("uuid", uuid.UUID(version).hex)

    def _version_of(self, topic: str, schema: str) -> _Version:
        """Find the version with this schema, or make it: first of an existing schema, then of a new one."""
        schema_id: SchemaIdTypeDef = {"RegistryName": self.name or "", "SchemaName": topic}
        ways: tuple[Callable[[], Any], ...] = (
            lambda: self._client.get_schema_by_definition(SchemaId=schema_id, SchemaDefinition=schema),
            lambda: self._client.register_schema_version(SchemaId=schema_id, SchemaDefinition=schema),
        )
        for way in ways:
            with suppress(self._client.exceptions.EntityNotFoundException):
                found: _Version = way()
                return found
        made = self._client.create_schema(
            RegistryId={"RegistryName": self.name or ""},
            SchemaName=topic,
            DataFormat="AVRO",
            Compatibility="NONE",
            SchemaDefinition=schema,
        )
        return {"SchemaVersionId": made["SchemaVersionId"], "Status": made["SchemaVersionStatus"]}

    @cached_property
    def _client(self) -> GlueClient:
        if self.client is not None:
            return self.client
        return boto3.client(
            "glue",
            region_name=self.region or os.environ.get("AWS_REGION"),
            endpoint_url=self.endpoint,
            config=Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard"}),
        )


def _failure(error: ClientError, asked_for: SchemaId | str) -> Exception:
    """Return what an error of Glue means for a request for a schema, or for that of a topic's values."""
    code = error.response.get("Error", {}).get("Code", "")
    if code == "EntityNotFoundException":
        return SchemaUnknown(str(asked_for)) if isinstance(asked_for, SchemaId) else _no_registry(error)
    if code == "InvalidInputException" and isinstance(asked_for, str):
        return schema_refused(asked_for, error.response.get("Error", {}).get("Message", code))
    if code in _NEVER:
        return _refused(f"{code}: {error.response.get('Error', {}).get('Message', '')}")
    return RegistryAway(f"AWS Glue's schema registry cannot answer: {error}")


def _no_registry(error: ClientError) -> RegistryRefused:
    return RegistryRefused(
        "AWS Glue has no such schema registry",
        found=error.response.get("Error", {}).get("Message", ""),
        expected="the registry of the lake file's [registry]",
        remedy=["Deploy the stacks again.", EditLakeFile("check name and region in [registry]")],
    )


def _refused(found: str) -> RegistryRefused:
    return RegistryRefused(
        "AWS Glue's schema registry refuses the role that runs the app",
        found=found,
        expected="a role that may call glue:GetSchemaVersion and, for derived tables in Avro, add schemas",
        remedy="Deploy the stacks again, or add the actions to the job's role.",
    )

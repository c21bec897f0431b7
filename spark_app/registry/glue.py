"""Ask AWS Glue's schema registry."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from spark_app.registry.framing import SchemaId
from spark_app.registry.registry import OtherFraming, RegistryAway, RegistryRefused, SchemaUnknown

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

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


@dataclass(frozen=True)
class GlueRegistry:
    """The registries of an AWS account in a region. A schema version's UUID is unique among all of them.

    `region` is None for the environment's. `endpoint` is the address of a Glue other than AWS's.
    `client` asks it instead of a client with the environment's credentials."""

    region: str | None = None
    endpoint: str | None = None
    client: GlueClient | None = None

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


def _failure(error: ClientError, schema_id: SchemaId) -> Exception:
    code = error.response.get("Error", {}).get("Code", "")
    if code == "EntityNotFoundException":
        return SchemaUnknown(str(schema_id))
    if code in _NEVER:
        return _refused(f"{code}: {error.response.get('Error', {}).get('Message', '')}")
    return RegistryAway(f"AWS Glue's schema registry cannot answer: {error}")


def _refused(found: str) -> RegistryRefused:
    return RegistryRefused(
        "AWS Glue's schema registry refuses the role that runs the app",
        found=found,
        expected="a role that may call glue:GetSchemaVersion",
        remedy="Deploy the stacks again, or add the action to the job's role.",
    )

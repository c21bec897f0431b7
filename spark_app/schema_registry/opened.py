"""Open the registry that a lake file names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from spark_app.schema_registry.http import ApicurioRegistry, ConfluentRegistry, Login
from spark_app.schema_registry.registry import (
    KeptIds,
    KeptSchemas,
    RegistryRefused,
    SchemaRegistry,
    SchemaStore,
)
from tributary.contract.aws_names import AwsNames
from tributary.contract.lake import Lake
from tributary.contract.schema_registry import Registry

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient


def open_registry(
    registry: Registry | None,
    apicurio: str | None = None,
    glue_endpoint: str | None = None,
    glue: GlueClient | None = None,
) -> SchemaRegistry | None:
    """Return the registry, or None if there is none. Sends no request.

    apicurio  the address of the Apicurio that `tributary up` has started in the registry's place
    glue      asks Glue instead of a client with the environment's credentials
    """
    opened = _client(registry, apicurio, glue_endpoint, glue)
    return None if opened is None else KeptSchemas(opened.schema)


def open_store(
    lake: Lake, apicurio: str | None = None, glue_endpoint: str | None = None
) -> SchemaStore | None:
    """Return the registry as the place for new schemas, or None if there is none. Sends no request.

    apicurio  the address of the Apicurio that `tributary up` has started in the registry's place
    """
    opened = _client(lake.registry, apicurio, glue_endpoint, glue_name=AwsNames(lake.name).resource)
    return None if opened is None else KeptIds(opened.add)


class _Client(SchemaRegistry, SchemaStore, Protocol):
    """A registry that can be asked for schemas, and takes new ones."""


def _client(
    registry: Registry | None,
    apicurio: str | None,
    glue_endpoint: str | None,
    glue: GlueClient | None = None,
    glue_name: str | None = None,
) -> _Client | None:
    """Return the client of the registry, or None if there is none. `glue_name` is Glue's if none is named."""
    if apicurio is not None:
        return ApicurioRegistry(apicurio)
    if registry is None:
        return None
    if registry.kind == "glue":
        # Loaded here, because boto3 takes a fifth of a second, and only Glue needs it.
        from spark_app.schema_registry.glue import GlueRegistry

        return GlueRegistry(registry.region, glue_endpoint, glue, registry.name or glue_name)
    if registry.address is None:
        return None
    asked = ApicurioRegistry if registry.kind == "apicurio" else ConfluentRegistry
    return asked(registry.address, _login(registry))


def _login(registry: Registry) -> Login | None:
    if registry.user is None or registry.password_env is None:
        return None
    password = os.environ.get(registry.password_env)
    if password is None:
        raise RegistryRefused(
            "The schema registry's password is missing",
            where=f"the environment variable {registry.password_env}",
            found="nothing",
            expected=f"the password of {registry.user}",
            remedy="Set the variable, and start the command again.",
        )
    return Login(registry.user, password)

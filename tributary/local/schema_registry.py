"""The schema registry that connectors and commands on this machine use: the lake file's, or Apicurio here."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import SecretStr

from connectors.avro_converter import converter_kind
from connectors.deployment import ApicurioAccess, ConfluentAccess, DirectorySecret, RegistryAccess
from spark_app.schema_registry.framing import SchemaId
from spark_app.schema_registry.opened import open_registry
from spark_app.schema_registry.registry import RegistryAway, SchemaRegistry, SchemaUnknown, another_kind
from tributary.contract.lake import Lake
from tributary.local.databases import PasswordMissing
from tributary.local.state import LocalSettings

SECRET = "schema-registry"
"""The name under which the Connect worker finds the registry's password."""

_NO_SCHEMA = SchemaId.of_int32(2**31 - 1)


def registry_access(lake: Lake, settings: LocalSettings, secrets_folder: Path) -> RegistryAccess | None:
    """Return how the connectors reach the registry; None if no source writes Avro."""
    kind = converter_kind(lake, here=True)
    if kind is None or lake.registry is None:
        return None
    if lake.registry.address is None:
        return ApicurioAccess(settings.apicurio_address)
    password = DirectorySecret(str(secrets_folder), SECRET) if lake.registry.user is not None else None
    access = ApicurioAccess if kind == "apicurio" else ConfluentAccess
    return access(lake.registry.address.rstrip("/"), lake.registry.user, password)


def registry_password(lake: Lake) -> SecretStr | None:
    """Return the password in the environment; None if nobody has to log in. Raises PasswordMissing."""
    variable = None if lake.registry is None else lake.registry.password_env
    if variable is None:
        return None
    password = os.environ.get(variable)
    if password:
        return SecretStr(password)
    raise PasswordMissing(
        f"the environment variable {variable} holds no password",
        where="[registry].password_env",
        found="no such variable" if password is None else "an empty variable",
        remedy=f"Set it: export {variable}=…",
    )


def check_registry(lake: Lake, settings: LocalSettings) -> str | None:
    """Ask the lake file's registry for a schema that nobody has, if a connector needs it.

    Return a warning if it does not answer, or cannot answer now: the connectors wait for it. Raises
    RegistryRefused if it is no such registry, or refuses the login.
    """
    if converter_kind(lake, here=True) is None or (registry := registry_of(lake, settings)) is None:
        return None
    try:
        registry.schema(_NO_SCHEMA)
    except SchemaUnknown:
        return None
    except RegistryAway as error:
        return f"{error}. Connectors with Avro fail until it answers. Check the address in [registry]."
    raise another_kind(
        "[registry].address", "a schema for an id that no schema has", "an error that there is no such schema"
    )


def registry_arguments(lake: Lake, settings: LocalSettings) -> list[str]:
    """Return the arguments with which the Spark app finds an Apicurio that runs here."""
    return ["--apicurio", settings.apicurio_address] if lake.has_registry_here else []


def registry_environment(lake: Lake) -> dict[str, str]:
    """Return the environment variables with which the Spark app logs in to the registry."""
    password, registry = registry_password(lake), lake.registry
    if password is None or registry is None or registry.password_env is None:
        return {}
    return {registry.password_env: password.get_secret_value()}


def registry_of(lake: Lake, settings: LocalSettings) -> SchemaRegistry | None:
    """Return the registry for commands on this machine; None if the lake has none."""
    return open_registry(lake.registry, settings.apicurio_address if lake.has_registry_here else None)

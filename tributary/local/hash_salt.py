"""The salt of hashed columns on this machine."""

from __future__ import annotations

import os

from pydantic import SecretStr

from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.local.state import LocalSettings

SECRET = "hash-salt"
"""The name under which the Connect worker finds the salt."""
SHORTEST = 16


class SaltMissing(TributaryError):
    """The environment variable that must hold the salt of hashed columns does not."""


def hash_salt(lake: Lake, settings: LocalSettings) -> SecretStr:
    """Return the salt in the environment, else the one of this state folder. Raises SaltMissing."""
    if lake.hash_salt_env is None:
        return settings.secrets.hash_salt
    salt = os.environ.get(lake.hash_salt_env, "")
    if len(salt) < SHORTEST or not salt.isprintable() or salt != salt.strip():
        raise SaltMissing(
            f"the environment variable {lake.hash_salt_env} holds no salt",
            where="[lake].hash_salt_env",
            found="nothing" if not salt else "a text that is too short, or has blanks around it",
            expected=f"at least {SHORTEST} characters that nobody can guess",
            remedy=f"Set it: export {lake.hash_salt_env}=…",
        )
    return SecretStr(salt)

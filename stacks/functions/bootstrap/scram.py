"""Compute the SCRAM-SHA-256 verifier of a password, which PostgreSQL stores and nobody can log in with.

PostgreSQL accepts the verifier instead of the password (src/common/scram-common.c, scram_build_secret). So
the password reaches neither the server nor its log.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

ITERATIONS = 4096
"""PostgreSQL's default (SCRAM_SHA_256_DEFAULT_ITERATIONS)."""


def verifier(password: str, salt: bytes) -> str:
    """Return the verifier of an ASCII password, which SASLprep does not change. `salt` is 16 random bytes."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, ITERATIONS)
    stored_key = hashlib.sha256(_keyed(salted, b"Client Key")).digest()
    server_key = _keyed(salted, b"Server Key")
    return f"SCRAM-SHA-256${ITERATIONS}:{_base64(salt)}${_base64(stored_key)}:{_base64(server_key)}"


def _keyed(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")

"""What PostgreSQL stores of a password: its SCRAM-SHA-256 verifier, with which nobody can log in.

PostgreSQL takes it in place of the password (src/common/scram-common.c, scram_build_secret), so the password
itself reaches neither the server nor a log of it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

ITERATIONS = 4096
"""PostgreSQL's own (SCRAM_SHA_256_DEFAULT_ITERATIONS)."""


def verifier(password: str, salt: bytes) -> str:
    """`salt` is of 16 random bytes. The password is of ASCII, which SASLprep leaves as it is."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, ITERATIONS)
    stored_key = hashlib.sha256(_keyed(salted, b"Client Key")).digest()
    server_key = _keyed(salted, b"Server Key")
    return f"SCRAM-SHA-256${ITERATIONS}:{_base64(salt)}${_base64(stored_key)}:{_base64(server_key)}"


def _keyed(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")

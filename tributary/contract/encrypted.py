"""Encrypted connections in the lake file, for engines whose Java drivers read trust stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from tributary.contract.entries import Problem, matching
from tributary.contract.source import Connection

SslMode = Literal["disabled", "required", "verified"]
"""The encryption of connections, and the check of the server's certificate."""

# Commands and Kafka Connect's worker run in different folders.
CertificatePath = Annotated[str, matching(r"/[^\x00$]*", "an absolute path, such as /etc/ssl/ca.pem")]


class EncryptedConnection(Connection):
    """The user's own server, with or without encryption.

    ca_file      path of the certificates, in PEM, that `ssl_mode = "verified"` trusts
    trust_store  path of the same certificates as Java reads them (PKCS12 or JKS, its password "changeit")
    """

    ssl_mode: SslMode = "required"
    ca_file: CertificatePath | None = None
    trust_store: CertificatePath | None = None

    def problems(self, entry: str) -> Iterator[Problem]:
        yield from super().problems(entry)
        given = {"ca_file": self.ca_file, "trust_store": self.trust_store}
        missing = [name for name, path in given.items() if path is None]
        if self.ssl_mode == "verified" and missing:
            expected = "ca_file and trust_store, which ssl_mode verified needs"
            found = f"no {' and no '.join(missing)}"
            yield Problem(entry, "no certificates for verifying the server", found, expected)
        if self.ssl_mode != "verified" and len(missing) < len(given):
            found = f"{' and '.join(name for name in given if name not in missing)} with {self.ssl_mode}"
            yield Problem(
                f"{entry}.ssl_mode", "certificates that nobody reads", found, 'ssl_mode = "verified"'
            )

"""Where the console listens, and who may talk to it there: this machine, or a network with TLS."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from cryptography import x509
from fastapi import FastAPI

from tributary.console import login
from tributary.console.guard import OwnPagesOnly, WithToken
from tributary.contract.errors import TributaryError

TOKEN_VARIABLE = "TRIBUTARY_CONSOLE_TOKEN"
SHORTEST_TOKEN = 20
_LOOPBACK = "127.0.0.1"


class NetworkUnfit(TributaryError):
    """The console cannot be opened to a network."""


class Listening(Protocol):
    """An address of the console, and its guards."""

    @property
    def address(self) -> str:
        """The address of this machine that the console binds to."""

    @property
    def port(self) -> int: ...

    @property
    def url(self) -> str:
        """Where a browser finds the console."""

    @property
    def certificate(self) -> Path | None:
        """The certificate, with which the console speaks TLS."""

    @property
    def key(self) -> Path | None:
        """The certificate's private key."""

    def guard(self, app: FastAPI) -> None:
        """Let the app answer only requests that it should."""


@dataclass(frozen=True)
class Loopback:
    """Only processes of this machine can connect."""

    port: int
    address: str = field(default=_LOOPBACK, init=False)
    certificate: None = field(default=None, init=False)
    key: None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"http://{_LOOPBACK}:{self.port}"

    def guard(self, app: FastAPI) -> None:
        hosts = frozenset(f"{name}:{self.port}" for name in (_LOOPBACK, "localhost"))
        app.add_middleware(OwnPagesOnly, is_host=hosts.__contains__)


@dataclass(frozen=True)
class Network:
    """Whoever knows the token can use the console, over TLS.

    names  the host names and addresses of the certificate. A name may begin with `*.`
    token  a secret that people type into the login page, and that programs send with each request
    """

    address: str
    port: int
    certificate: Path
    key: Path
    names: tuple[str, ...]
    token: str = field(repr=False)

    @classmethod
    def open(cls, address: str, port: int, certificate: Path, key: Path) -> Network:
        """Read the certificate, and the token from the environment. Raises NetworkUnfit."""
        return cls(address, port, certificate, key, _names(certificate, key), _token())

    @property
    def url(self) -> str:
        whole = (name for name in (*self.names, self.address) if not name.startswith("*."))
        name = next(whole)
        return f"https://[{name}]:{self.port}" if ":" in name else f"https://{name}:{self.port}"

    def is_host(self, host: str) -> bool:
        """Tell whether a request's header `Host`, with or without a port, has a name of the certificate."""
        name, _, port = host.rpartition(":")
        if not name or not port.isdecimal():
            name = host
        name = name.strip("[]")
        return any(
            fnmatchcase(name, known) if known.startswith("*.") else name == known for known in self.names
        )

    def guard(self, app: FastAPI) -> None:
        login.add(app, self.token)
        # The one that is added last comes first.
        app.add_middleware(WithToken, token=self.token)
        app.add_middleware(OwnPagesOnly, is_host=self.is_host, scheme="https")


def _token() -> str:
    token = os.environ.get(TOKEN_VARIABLE, "")
    if len(token) < SHORTEST_TOKEN:
        raise NetworkUnfit(
            "The console is open to a network only with a token",
            where=f"the environment variable {TOKEN_VARIABLE}",
            found=f"{len(token)} characters" if token else "nothing",
            expected=f"at least {SHORTEST_TOKEN} characters",
            remedy=f'Make one: export {TOKEN_VARIABLE}="$(openssl rand -hex 24)"',
        )
    return token


def _names(certificate: Path, key: Path) -> tuple[str, ...]:
    """Return the names that the certificate is for. Raises NetworkUnfit."""
    try:
        # Without a password, OpenSSL would ask for the one of an encrypted key on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: b"")
        found = x509.load_pem_x509_certificates(certificate.read_bytes())[0]
    except (OSError, ValueError) as error:  # ssl's own errors are OSErrors.
        raise NetworkUnfit(
            "The console cannot use this certificate with this key",
            where=f"{certificate}, {key}",
            found=str(error),
            expected="a certificate and its private key without a password, both as PEM",
        ) from error
    if found.not_valid_after_utc < datetime.now(UTC):
        raise NetworkUnfit(
            "The certificate has expired",
            where=str(certificate),
            found=f"{found.not_valid_after_utc:%Y-%m-%d %H:%M} UTC",
            remedy="Get a new one.",
        )
    try:
        alternatives = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names: tuple[str, ...] = ()
    else:
        addresses = map(str, alternatives.get_values_for_type(x509.IPAddress))
        names = (*(name.lower() for name in alternatives.get_values_for_type(x509.DNSName)), *addresses)
    if not names:
        raise NetworkUnfit(
            "The certificate has no subject alternative name, which is what browsers look at",
            where=str(certificate),
        )
    return names

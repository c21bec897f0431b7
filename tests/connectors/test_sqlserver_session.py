"""The driver encrypts and verifies as the lake file says: seen from the other end of its connection.

The other end speaks only the beginning of SQL Server's protocol (MS-TDS): PRELOGIN with TLS inside."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import SecretStr

from connectors.engines.engine import Encryption, Login, NotConnected
from connectors.engines.sqlserver.login import connect
from stacks.functions.database_check.main import NotPrepared, _query
from tests.ports import free_port
from tributary.contract.engines.sqlserver import SqlServerSource
from tributary.contract.lake import parse_lake

PRELOGIN, LOGIN = 0x12, 0x10
OFF, ON, NOT_SUPPORTED, REQUIRED = 0, 1, 2, 3
ENCRYPTION, END = 1, 0xFF
PASSWORD = "s3cret-Password"


@dataclass
class Server:
    """What a server saw: the encryption that the driver asked for, and whether it logged in through TLS."""

    port: int = 0
    asked_for: int | None = None
    got_encrypted_login: bool = False
    plain: bytes = b""
    failures: list[str] = field(default_factory=list)


@contextmanager
def serving(answer: int, certificate: Path | None = None) -> Iterator[Server]:
    """Serve one connection, and answer the driver's PRELOGIN with this encryption."""
    server = Server()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server.port = listener.getsockname()[1]
        thread = threading.Thread(target=_serve, args=(listener, server, answer, certificate), daemon=True)
        thread.start()
        yield server
        thread.join(10)


def _serve(listener: socket.socket, server: Server, answer: int, certificate: Path | None) -> None:
    listener.settimeout(10)
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(5)
        try:
            _, prelogin = _receive(connection)
            server.asked_for = _encryption_in(prelogin)
            _send(connection, 0x04, _prelogin(answer))
            if certificate is None:
                server.plain = connection.recv(4096)
                return
            login = _login_through_tls(connection, certificate)
            server.got_encrypted_login = PASSWORD.encode() not in login and login[:1] == bytes([LOGIN])
        except (OSError, ssl.SSLError, EOFError) as error:
            server.failures.append(str(error))


def _login_through_tls(connection: socket.socket, certificate: Path) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=True)
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            if sent := outgoing.read():
                _send(connection, PRELOGIN, sent)
            incoming.write(_receive(connection)[1])
    if sent := outgoing.read():
        _send(connection, PRELOGIN, sent)
    # From here on, the driver sends TLS without packets around it.
    while True:
        try:
            return tls.read(4096)
        except ssl.SSLWantReadError:
            received = connection.recv(4096)
            if not received:
                raise EOFError("the driver hung up") from None
            incoming.write(received)


def _receive(connection: socket.socket) -> tuple[int, bytes]:
    header = _exactly(connection, 8)
    kind, _, length = struct.unpack(">BBH", header[:4])
    return kind, _exactly(connection, length - 8)


def _exactly(connection: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        part = connection.recv(length - len(found))
        if not part:
            raise EOFError("the driver hung up")
        found += part
    return found


def _send(connection: socket.socket, kind: int, content: bytes) -> None:
    connection.sendall(struct.pack(">BBHHBB", kind, 1, len(content) + 8, 0, 1, 0) + content)


def _prelogin(encryption: int) -> bytes:
    tokens = struct.pack(">BHHBHHB", 0, 11, 6, ENCRYPTION, 17, 1, END)
    return tokens + bytes([16, 0, 0x10, 0, 0, 0]) + bytes([encryption])


def _encryption_in(prelogin: bytes) -> int | None:
    for start in range(0, len(prelogin), 5):
        if prelogin[start] == END:
            break
        token, offset, _ = struct.unpack(">BHH", prelogin[start : start + 5])
        if token == ENCRYPTION:
            return int(prelogin[offset])
    return None


def certificate_for(folder: Path, name: str) -> Path:
    """Return a file with a new key and its own certificate for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("127.0.0.1")]
            ),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path


def log_in(server: Server, entries: str = "", encryption: Encryption | None = None) -> str:
    """Log in as the lake file says, and return the messages for the user."""
    lake = parse_lake(
        '[lake]\nname = "shop"\n[source.erp]\nengine = "sqlserver"\ndatabase = "ERP"\ntables = ["dbo.*"]\n'
        f'[source.erp.connection]\nhost = "127.0.0.1"\npassword_env = "P"\n{entries}'
    )
    source = lake.source("erp")
    assert isinstance(source, SqlServerSource)
    with pytest.raises(NotConnected) as failed:
        connect(source, Login("127.0.0.1", server.port, "debezium", SecretStr(PASSWORD), encryption))
    assert PASSWORD not in str(failed.value)
    return str(failed.value)


def test_no_password_is_sent_to_a_server_that_does_not_encrypt() -> None:
    with serving(NOT_SUPPORTED) as server:
        told = log_in(server)
    assert server.asked_for in (ON, REQUIRED)
    assert server.plain == b""
    assert f"127.0.0.1:{server.port}, database ERP" in told


def test_the_mode_without_encryption_asks_for_none() -> None:
    with serving(NOT_SUPPORTED) as server:
        log_in(server, 'ssl_mode = "disabled"')
    assert server.asked_for == NOT_SUPPORTED


def verified(ca_file: Path) -> str:
    return f'ssl_mode = "verified"\nca_file = "{ca_file}"\ntrust_store = "/unused.p12"'


def test_a_login_is_encrypted_whoever_the_server_is_and_verified_if_the_lake_file_says_so(
    tmp_path: Path,
) -> None:
    own, other = certificate_for(tmp_path, "own"), certificate_for(tmp_path, "other")
    for entries, is_trusted in (("", True), (verified(own), True), (verified(other), False)):
        with serving(REQUIRED, own) as server:
            log_in(server, entries)
        assert server.got_encrypted_login == is_trusted, (entries, server.failures)


def test_a_login_that_names_its_encryption_gets_it_whatever_the_lake_file_says(tmp_path: Path) -> None:
    own, other = certificate_for(tmp_path, "own"), certificate_for(tmp_path, "other")
    for ca_file, is_trusted in ((None, True), (own, True), (other, False)):
        encryption = Encryption(None if ca_file is None else str(ca_file))
        with serving(REQUIRED, own) as server:
            log_in(server, 'ssl_mode = "disabled"', encryption)
        assert server.got_encrypted_login == is_trusted, (encryption, server.failures)


def test_the_check_in_a_deployment_sends_no_password_unencrypted() -> None:
    request = {"Driver": "pymssql", "User": "u", "Host": "127.0.0.1", "Database": "ERP", "Query": "SELECT 1"}
    with serving(NOT_SUPPORTED) as server, pytest.raises((OSError, NotPrepared)):
        _query({**request, "Port": str(server.port), "Remedy": "Run erp.sql."}, PASSWORD)
    assert server.asked_for in (ON, REQUIRED)
    assert server.plain == b""


def test_the_check_in_a_deployment_waits_for_a_server_that_does_not_answer_yet() -> None:
    port = str(free_port())
    request = {"Driver": "pymssql", "User": "u", "Host": "127.0.0.1", "Port": port, "Database": "ERP"}
    with pytest.raises(OSError, match="Unable to connect"):
        _query({**request, "Query": "SELECT 1", "Remedy": "Run erp.sql."}, PASSWORD)

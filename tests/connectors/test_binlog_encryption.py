"""A MariaDB with a certificate is verified, by our own sessions and by Debezium's connector."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from pydantic import SecretStr

from connectors.certificates import STORE_PASSWORD
from connectors.deployment import DirectorySecret
from connectors.engines.binlog.session import first_row
from connectors.engines.engine import Login, NotConnected
from connectors.engines.mariadb.engine import MariaDbEngine
from connectors.plugins import build_plugins, unpack_plugins
from tests.conftest import running_jvm
from tests.connectors.deployments import local_deployment
from tests.connectors.test_sqlserver_session import certificate_for
from tests.ports import free_port
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.lake import Lake, parse_lake
from tributary.local.mariadb import ADMIN, MariaDbServer
from tributary.local.process import Command
from tributary.local.server_account import SERVER_ACCOUNT, is_root
from tributary.local.server_files import read_server_files

pytestmark = pytest.mark.slow

ENGINE = MariaDbEngine()


@dataclass(frozen=True)
class EncryptedMariaDb(MariaDbServer):
    """The local MariaDB, with the certificate and the key of a file."""

    certificate: Path

    def command(self) -> Command:
        command = super().command()
        arguments = [one for one in command.arguments if one != "--skip-ssl"]
        files = [f"--ssl-cert={self.certificate}", f"--ssl-key={self.certificate}"]
        return replace(command, arguments=[*arguments, *files])


@dataclass(frozen=True)
class Certificates:
    """A server's certificate, and another one with the same name. Each vouches for itself."""

    own: Path
    other: Path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    found = Certificates(certificate_for(folder, "own"), certificate_for(folder, "other"))
    for path in (found.own, found.other):
        (certificate,) = x509.load_pem_x509_certificates(path.read_bytes())
        store = pkcs12.serialize_java_truststore(
            [pkcs12.PKCS12Certificate(certificate, b"db")], BestAvailableEncryption(STORE_PASSWORD.encode())
        )
        path.with_suffix(".p12").write_bytes(store)
    return found


@pytest.fixture(scope="module")
def server(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EncryptedMariaDb]:
    folder = tmp_path_factory.mktemp("encrypted")
    binaries = read_server_files(with_mariadb=True).mariadb
    assert binaries is not None
    readable = folder / "server.pem"
    readable.write_bytes(certificates.own.read_bytes())
    if is_root():
        os.chown(readable, SERVER_ACCOUNT, SERVER_ACCOUNT)
    running = EncryptedMariaDb(
        binaries,
        folder / "server",
        folder / "log",
        folder / "run",
        free_port(),
        secrets.token_hex(8),
        readable,
    )
    running.run.mkdir()
    try:
        running.start(threading.Event())
        yield running
    finally:
        running.stop(running.run)


def lake_of(server: EncryptedMariaDb, entries: str, host: str = "127.0.0.1") -> Lake:
    return parse_lake(
        '[lake]\nname = "shop"\n[source.web]\nengine = "mariadb"\ntables = ["shop.*"]\n'
        f'[source.web.connection]\nhost = "{host}"\nport = {server.port}\npassword_env = "P"\n{entries}'
    )


def verified(ca_file: Path) -> str:
    return f'ssl_mode = "verified"\nca_file = "{ca_file}"\ntrust_store = "{ca_file.with_suffix(".p12")}"'


def source_of(lake: Lake) -> BinlogSource:
    source = lake.source("web")
    assert isinstance(source, BinlogSource)
    return source


def cipher(server: EncryptedMariaDb, entries: str, host: str = "127.0.0.1") -> str:
    """Log in as the lake file says, and return the cipher of the session; empty if there is none."""
    login = Login(host, server.port, ADMIN, SecretStr(server.admin_password))
    with ENGINE.connect(source_of(lake_of(server, entries, host)), login) as session:
        found = first_row(session, "SHOW SESSION STATUS LIKE 'Ssl_cipher'")
    assert found is not None
    return str(found["Value"])


def test_a_session_is_verified_if_the_lake_file_says_so(
    server: EncryptedMariaDb, certificates: Certificates
) -> None:
    assert cipher(server, verified(certificates.own))
    assert cipher(server, "")
    assert not cipher(server, 'ssl_mode = "disabled"')


def test_another_certificate_or_name_is_refused_with_the_file_and_the_reason(
    server: EncryptedMariaDb, certificates: Certificates, tmp_path: Path
) -> None:
    with pytest.raises(NotConnected, match=r"other\.pem do not vouch for it: self-signed certificate"):
        cipher(server, verified(certificates.other))
    with pytest.raises(NotConnected, match=r"do not vouch for it: .*localhost"):
        cipher(server, verified(certificates.own), "localhost")
    with pytest.raises(NotConnected, match=r"missing\.pem cannot be read: No such file"):
        cipher(server, verified(tmp_path / "missing.pem"))
    (tmp_path / "empty.pem").write_text("no certificate")
    with pytest.raises(NotConnected, match=r"empty\.pem holds no certificates in PEM"):
        cipher(server, verified(tmp_path / "empty.pem"))


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    plugins = unpack_plugins(build_plugins(names=("debezium-connector-mariadb",)))
    with running_jvm([folder / "*" for folder in plugins.iterdir()]) as jvm:
        yield jvm


def test_the_connector_verifies_the_server_by_the_trust_store(
    server: EncryptedMariaDb, certificates: Certificates, jvm: Any
) -> None:
    def told(entries: str, host: str = "127.0.0.1") -> str:
        """Return what Debezium says when it tries the rendered config."""
        lake = lake_of(server, entries, host)
        source = source_of(lake).model_copy()
        access = ENGINE.access(lake, source, host, server.port, DirectorySecret("unused", "unused"))
        deployment = replace(local_deployment(lake), databases={"web": replace(access, user=ADMIN)})
        options = dict(ENGINE.render(lake, source, deployment).config)
        options["database.password"] = server.admin_password
        result = jvm.io.debezium.connector.mariadb.MariaDbConnector().validate(options)
        return " ".join(
            message
            for value in result.configValues()
            if value.name().startswith("database.")
            for message in value.errorMessages()
        )

    assert told(verified(certificates.own)) == ""
    assert "PKIX path" in told(verified(certificates.other))
    assert told(verified(certificates.own), "localhost") != ""

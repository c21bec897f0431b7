"""A login that names its encryption gets it, whatever the lake file says of a connection."""

from __future__ import annotations

import ssl
from typing import Any

import psycopg
import pymysql
import pytest
from pydantic import SecretStr

from connectors.certificates import RDS_ROOTS
from connectors.engines.engine import Encryption, Login, NotConnected
from connectors.engines.registry import engine_of
from tributary.contract.lake import parse_lake

LAKE = parse_lake(
    """
    [lake]
    name = "shop"

    [source.web]
    engine = "postgres"
    database = "shop"
    tables = ["public.*"]

    [source.stock]
    engine = "mysql"
    tables = ["stock.*"]
    """
)


def asked_of_the_driver(monkeypatch: pytest.MonkeyPatch, name: str, ca_file: str | None) -> Any:
    """Return the arguments of the driver's `connect`."""
    asked: list[Any] = []

    def connect(*arguments: Any, **options: Any) -> None:
        asked.append(options if options.get("host") else arguments)
        raise psycopg.OperationalError if arguments else pymysql.OperationalError(1, "no")

    monkeypatch.setattr(psycopg, "connect", connect)
    monkeypatch.setattr(pymysql, "connect", connect)
    source = LAKE.source(name)
    login = Login("db", 1, "user", SecretStr("p"), Encryption(ca_file))
    with pytest.raises(NotConnected):
        engine_of(source).connect(source, login)
    return asked[0]


def test_postgres_verifies_name_and_certificate_or_encrypts(monkeypatch: pytest.MonkeyPatch) -> None:
    (verified,) = asked_of_the_driver(monkeypatch, "web", str(RDS_ROOTS))
    assert "sslmode=verify-full" in verified
    assert f"sslrootcert={RDS_ROOTS}" in verified
    (encrypted,) = asked_of_the_driver(monkeypatch, "web", None)
    assert "sslmode=require" in encrypted


def test_mysql_verifies_name_and_certificate_or_encrypts(monkeypatch: pytest.MonkeyPatch) -> None:
    verified = asked_of_the_driver(monkeypatch, "stock", str(RDS_ROOTS))["ssl"]
    assert (verified.check_hostname, verified.verify_mode) == (True, ssl.CERT_REQUIRED)
    assert len(verified.get_ca_certs()) > 10
    encrypted = asked_of_the_driver(monkeypatch, "stock", None)
    assert encrypted["ssl"].verify_mode == ssl.CERT_NONE
    assert encrypted["ssl_disabled"] is False

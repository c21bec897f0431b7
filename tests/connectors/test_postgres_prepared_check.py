"""A deployment's check finds a real PostgreSQL unprepared until its administrator's SQL has run."""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg
import pytest

from connectors.engines.postgres.names import replication_user, signal_table
from connectors.engines.postgres.preparation import setup_sql
from connectors.engines.postgres.prepared_check import missing_preparation_query
from stacks.functions import database_check
from stacks.functions.database_check.main import NotPrepared, _query
from tests.postgres_source import postgres_source
from tributary.artifacts.pip import LAMBDA, fetch_wheels
from tributary.contract.lake import parse_lake
from tributary.local.postgres import PostgresServer

PASSWORD = "a-password"


@pytest.fixture(autouse=True)
def _with_the_functions_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    for wheel in fetch_wheels(Path(database_check.__path__[0]) / "requirements.txt", LAMBDA):
        monkeypatch.setattr(sys, "path", [str(wheel), *sys.path])


def test_the_check_finds_what_the_administrators_sql_has_not_prepared_yet(
    postgres: PostgresServer, database: str, admin: psycopg.Connection
) -> None:
    lake = parse_lake(
        f'[lake]\nname = "{database.replace("_", "-")}"\n[source.web]\nengine = "postgres"\n'
        f'database = "{database}"\ntables = ["public.*"]\n'
    )
    source = postgres_source(lake)
    role = replication_user(lake, source)
    request = {
        "User": role,
        "Host": "127.0.0.1",
        "Port": str(postgres.port),
        "Database": database,
        "SslMode": "prefer",
        "Query": missing_preparation_query(lake, source),
        "Remedy": "Run web.sql.",
    }
    with pytest.raises(NotPrepared, match=r"cannot log in: .*Run web\.sql"):
        _query(request, PASSWORD)
    admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'".encode())
    assert _query(request, PASSWORD) == [
        f"{role} may not replicate",
        f"no table tributary.heartbeat that {role} may write",
        f"no table tributary.{signal_table(lake, source)} that {role} may write",
        f"no publication {role}",
    ]
    admin.execute("CREATE TABLE public.orders (id int PRIMARY KEY)")
    with admin.transaction():
        admin.execute(setup_sql(lake, source).encode())
    assert _query(request, PASSWORD) == []
    admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())

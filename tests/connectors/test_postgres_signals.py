"""Debezium gets only names of tables that it can read in a signal and, after a restart, in its offsets."""

from __future__ import annotations

import json

import psycopg
import pytest

from connectors.engines.engine import NotReadable
from connectors.engines.postgres.names import replication_user, signal_table
from connectors.engines.postgres.preparation import apply_postgres_setup
from connectors.engines.postgres.signals import ask_for_snapshot, forget_request
from tests.connectors.test_postgres_setup import PASSWORD, drop_role, lake_of, log_in
from tests.postgres_source import postgres_source
from tributary.contract.online_snapshot import Request
from tributary.contract.table_name import TableName
from tributary.local.postgres import PostgresServer

pytestmark = pytest.mark.slow


def test_a_request_is_one_row_that_debeziums_own_user_can_write_and_remove(
    postgres: PostgresServer, database: str, admin: psycopg.Connection
) -> None:
    lake = lake_of('["public.*"]')
    source = postgres_source(lake)
    apply_postgres_setup(admin, lake, source, PASSWORD)
    rows = f'SELECT id, type, data FROM tributary."{signal_table(lake, source)}" ORDER BY id'.encode()
    try:
        with log_in(postgres, database, lake) as connection:
            for table, condition in (("orders", None), ("Odd(Name)+ü", "tableoid = 5")):
                request = Request(table, TableName("web", "public", table), (), 0, condition)
                ask_for_snapshot(connection, lake, source, request)
                ask_for_snapshot(connection, lake, source, request)
            found = {row_id: json.loads(data) for row_id, _, data in admin.execute(rows)}
            assert found == {
                "orders": {"type": "INCREMENTAL", "data-collections": ["public.orders"]},
                "Odd(Name)+ü": {
                    "type": "INCREMENTAL",
                    "data-collections": ['"public"."Odd(Name)+ü"'],
                    "additional-conditions": [{"data-collection": ".*", "filter": "(tableoid = 5)"}],
                },
            }
            forget_request(connection, lake, source, request)
            assert [row[0] for row in admin.execute(rows)] == ["orders"]
            for table in ("Order Items", "tab\there", 'quo"te', "it's", "back`tick", "open(", "[z-a]"):
                unreadable = Request("x", TableName("web", "public", table), (), 0)
                with pytest.raises(NotReadable, match="characters in its name"):
                    ask_for_snapshot(connection, lake, source, unreadable)
            assert [row[0] for row in admin.execute(rows)] == ["orders"]
    finally:
        drop_role(admin, replication_user(lake, source))

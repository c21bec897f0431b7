"""Lakes with a PostgreSQL source and a source of the engine that only tests register."""

from __future__ import annotations

from pathlib import Path

from tributary.contract.lake import Lake, parse_lake
from tributary.contract.table_name import TableName
from tributary.local.server_files import ServerFiles
from tributary.local.servers import Servers
from tributary.local.state import StateFolder, choose_settings

POSTGRES = """
[lake]
name = "shop"

[source.web]
engine = "postgres"
database = "webshop"
tables = ["public.*"]
"""
ABACUS = """
[source.counter]
engine = "abacus"
tables = ["counting.*"]
"""
CONNECTION = """
[source.counter.connection]
host = "abacus.example.org"
admin_user = "abbot"
admin_password_env = "ABBOT"
"""
BEADS = TableName("counter", "counting", "beads")


def lake_with(more: str = CONNECTION, frame: str = "") -> Lake:
    return parse_lake(POSTGRES + ABACUS + frame + more)


def servers_of(lake: Lake, folder: Path) -> Servers:
    state = StateFolder(folder / "state")
    state.create()
    files = ServerFiles(java=folder, kafka=(), s3proxy=folder, postgres=folder)
    return Servers(lake, state, choose_settings(state, lake.name, {}, frozenset()), files)

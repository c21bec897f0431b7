"""Running lakes with little data for the examples, and the environment in which the examples run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tributary.cli.demo import LAKE_FILE
from tributary.cli.demo_steps import write_lake_file
from tributary.local.databases import SourceDatabase
from tributary.local.pipeline import down
from tributary.local.state import StateFolder
from tributary.operations.workspace import Workspace

PROJECT = Path(__file__).parents[2]
PROGRAMS = PROJECT / ".venv-examples" / "bin"


@dataclass(frozen=True)
class RunningLake:
    """A lake that equals its database, with its servers running."""

    lake_file: Path
    state: Path

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment in which an example finds the lake."""
        own = {"TRIBUTARY_LAKE": str(self.lake_file), "TRIBUTARY_STATE": str(self.state)}
        return {**os.environ, **own}

    def connect(self) -> psycopg.Connection:
        """Open a session of PostgreSQL in which each statement is a transaction."""
        workspace = Workspace.open(self.lake_file, self.state)
        (source,) = workspace.lake.sources
        session: psycopg.Connection = SourceDatabase(
            workspace.lake, source, workspace.state, workspace.settings
        ).connect()
        return session

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return PostgreSQL's answer, which shares no code with the lake."""
        with self.connect() as session, session.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query.encode()).fetchall()


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the programs that the examples need. Skip the test if it is missing."""
    if not (PROGRAMS / "dbt").exists():
        pytest.skip(f"{PROGRAMS} is missing: run the examples' tests with `make examples`")
    return PROGRAMS


@pytest.fixture(scope="session")
def demo_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    """The demo after 40 transactions, among them refunds and changed keys."""
    folder = tmp_path_factory.mktemp("demo")
    lake = RunningLake(folder / "lake.toml", folder / "state")
    write_lake_file(LAKE_FILE, lake.lake_file)
    size = ["--scale", "0.002", "--transactions", "40", "--rate", "40"]
    with kept_running(lake, str(Path(sys.executable).with_name("tributary")), "demo", *size):
        yield lake


@contextmanager
def kept_running(lake: RunningLake, *command: str) -> Iterator[str]:
    """Run a command that fills the lake and keeps its servers running. Yield its output, and stop them."""
    places = ["--lake", str(lake.lake_file), "--state", str(lake.state)]
    try:
        whole = [*command, "--keep-running", *places]
        done = subprocess.run(whole, capture_output=True, text=True, cwd=PROJECT)
        assert done.returncode == 0, done.stdout + done.stderr
        yield done.stdout
    finally:
        down(StateFolder(lake.state))

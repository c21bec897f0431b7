"""A connector that is restarted with its tasks reads its password again, and continues where it was.

On AWS, the rotation of a password relies on it: MSK Connect's RestartConnector restarts connector and tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import requests
from psycopg import sql

from connectors.connect_rest import ConnectRest
from connectors.engines.postgres.names import replication_user
from tests.local.landed import read_kafka, wait_until
from tests.postgres_source import postgres_source
from tributary.local.connect import secrets_folder
from tributary.local.databases import DatabaseUnreachable, SourceDatabase
from tributary.local.pipeline import RunningPipeline

pytestmark = pytest.mark.slow


@pytest.fixture
def database(pipeline: RunningPipeline) -> Iterator[psycopg.Connection]:
    with _of(pipeline).connect() as session:
        session.execute("CREATE TABLE rotated (id int PRIMARY KEY)")
        yield session
        session.execute("DROP TABLE rotated")


def test_a_restart_makes_the_task_read_a_changed_password(
    pipeline: RunningPipeline, database: psycopg.Connection
) -> None:
    database.execute("INSERT INTO rotated VALUES (1)")
    read_kafka(pipeline, "rotated", at_least=1)
    before = _sessions(pipeline, database)
    assert before
    with _changed_password(pipeline, database):
        # Open connections survive.
        database.execute("INSERT INTO rotated VALUES (2)")
        read_kafka(pipeline, "rotated", at_least=2)
        assert _sessions(pipeline, database) & before
        _restart(pipeline)
        wait_until(lambda: not _sessions(pipeline, database) & before, "end of the old connections")
        database.execute("INSERT INTO rotated VALUES (3)")
        # After a restart, Debezium may send the last events again.
        wait_until(lambda: len(_keys(pipeline)) == 3, "third row in Kafka")
        assert _sessions(pipeline, database)
    _restart(pipeline)


@contextmanager
def _changed_password(pipeline: RunningPipeline, database: psycopg.Connection) -> Iterator[None]:
    """Give role and secret another password, and at the end the former one."""
    of = _of(pipeline)
    file = secrets_folder(pipeline.state.connect) / of.secret_name
    former = file.read_text()
    _change(pipeline, database, file, "Another0Password")
    try:
        with pytest.raises(DatabaseUnreachable):
            of.connect_for_replication()
        yield
    finally:
        _change(pipeline, database, file, former)


def _change(pipeline: RunningPipeline, database: psycopg.Connection, file: Path, text: str) -> None:
    file.write_text(text)
    database.execute(
        sql.SQL("ALTER ROLE {} PASSWORD {}").format(
            sql.Identifier(_role(pipeline)), sql.Literal(text.strip())
        )
    )


def _restart(pipeline: RunningPipeline) -> None:
    url = pipeline.settings.connect_url
    name = pipeline.lake.source_names(pipeline.lake.sources[0]).connector
    answer = requests.post(
        f"{url}/connectors/{name}/restart", params={"includeTasks": "true", "onlyFailed": "false"}, timeout=30
    )
    assert answer.status_code == 202, answer.text
    rest = ConnectRest(url)
    wait_until(lambda: rest.status(name).is_running, "running connector")


def _keys(pipeline: RunningPipeline) -> set[bytes | None]:
    return {event.key for event in read_kafka(pipeline, "rotated", at_least=3)}


def _sessions(pipeline: RunningPipeline, database: psycopg.Connection) -> set[int]:
    query = "SELECT pid FROM pg_stat_activity WHERE usename = %s"
    return {pid for (pid,) in database.execute(query, (_role(pipeline),))}


def _role(pipeline: RunningPipeline) -> str:
    return replication_user(pipeline.lake, postgres_source(pipeline.lake))


def _of(pipeline: RunningPipeline) -> SourceDatabase:
    return SourceDatabase(pipeline.lake, pipeline.lake.sources[0], pipeline.state, pipeline.settings)

"""An engine's vocabulary stays in the engine's own modules, and no other code asks for an engine's name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tributary.contract.engines.registry import SOURCES

PROJECT = Path(__file__).parents[2]

WORDS = (
    *("lsn", "slot", "slots", "publication", "publications", "wal", "pgoutput", "psycopg", "toast"),
    *("gtid", "binlog", "pymysql", "innodb"),
    *("pymssql", "sqlcmd", "seqval"),
)
"""Own terms of PostgreSQL, of MySQL and MariaDB, and of SQL Server. They also count as part of a longer name,
such as `slot_name` or `PgLsn`."""

OF_AN_ENGINE = (
    "connectors/engines/postgres/",
    "tributary/contract/engines/postgres.py",
    "stacks/database/postgres/",
    "stacks/functions/bootstrap/",
    "spark_app/positions/postgres.py",
    "connectors/java/io/tributary/connect/postgres/",
    "connectors/engines/binlog/",
    "connectors/java/io/tributary/connect/binlog/",
    "connectors/engines/mysql/",
    "connectors/engines/mariadb/",
    "tributary/contract/engines/binlog.py",
    "tributary/contract/engines/mysql.py",
    "tributary/contract/engines/mariadb.py",
    "stacks/database/binlog/",
    "stacks/database/mysql/",
    "spark_app/positions/binlog.py",
    "connectors/engines/sqlserver/",
    "stacks/database/sqlserver/",
    "stacks/functions/sqlserver_bootstrap/",
    "spark_app/positions/sqlserver.py",
)
"""The engine's own folders."""

OF_A_SERVER_OR_AN_EVENT = {
    "tributary/local/postgres.py": "runs the server, which also holds Iceberg's catalog",
    "tributary/local/mariadb.py": "runs the server",
    "stacks/functions/database_check/": "asks with the driver of each engine",
    "stacks/functions/rotation/": "changes a password with the driver of each engine",
    "tributary/local/class_training/": "holds an event of Debezium's for a first run of Spark",
    "tributary/superset/": "reads the lake over MySQL's protocol, with a driver of MySQL",
    "tributary/tickit/": "the demo's database is a PostgreSQL",
    "bench/": "measures with a PostgreSQL and its events",
}
"""Other modules that may use the vocabulary, with the reason."""

ONLY_REGISTRIES_IMPORT = {
    "connectors.engines.mysql": ("connectors/engines/registry.py",),
    "connectors.engines.mariadb": ("connectors/engines/registry.py",),
    "tributary.contract.engines.mysql": (
        "tributary/contract/engines/registry.py",
        "tributary/contract/aws.py",
    ),
    "tributary.contract.engines.mariadb": ("tributary/contract/engines/registry.py",),
    "spark_app.positions.binlog": ("spark_app/positions/registry.py",),
    "stacks.database.binlog": ("stacks/database/registry.py",),
    "stacks.database.mysql": ("stacks/database/registry.py",),
    "connectors.engines.sqlserver": ("connectors/engines/registry.py",),
    "tributary.contract.engines.sqlserver": (
        "tributary/contract/engines/registry.py",
        "tributary/contract/aws.py",
    ),
    "spark_app.positions.sqlserver": ("spark_app/positions/registry.py",),
    "stacks.database.sqlserver": ("stacks/database/registry.py",),
    "connectors.engines.postgres": ("connectors/engines/registry.py",),
    "tributary.contract.engines.postgres": (
        "tributary/contract/engines/registry.py",
        "tributary/contract/aws.py",
        "connectors/engines/postgres/",
    ),
    "spark_app.positions.postgres": ("spark_app/positions/registry.py",),
    "stacks.database.postgres": ("stacks/database/registry.py",),
    "tributary.contract.engines.dynamodb": ("tributary/contract/engines/registry.py",),
    "spark_app.positions.dynamodb": ("spark_app/positions/registry.py",),
}
"""Modules outside the engine's own folders that may import its modules."""


FOLDERS = ("bench", "connectors", "spark_app", "stacks", "tributary")


@cache
def modules() -> tuple[tuple[str, str], ...]:
    """Return path and text of every module in Python except tests."""
    return (("app.py", (PROJECT / "app.py").read_text()), *_texts("*.py"))


@cache
def sources() -> tuple[tuple[str, str], ...]:
    """Return path and text of all code in Python and Java except tests."""
    return (*modules(), *_texts("*.java"))


def _texts(name: str) -> tuple[tuple[str, str], ...]:
    paths = [path for folder in FOLDERS for path in (PROJECT / folder).rglob(name)]
    return tuple((path.relative_to(PROJECT).as_posix(), path.read_text()) for path in paths)


def words_of(text: str) -> set[str]:
    """Return the words of a text in lower case, after splitting names at underscores and capital letters."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", text)
    return {part.lower() for part in parts}


def is_in(path: str, rooms: Iterable[str]) -> bool:
    return any(path == room or (room.endswith("/") and path.startswith(room)) for room in rooms)


def test_a_name_is_taken_apart_into_its_words() -> None:
    assert words_of("drop_slot(PgLsn, slotName, WAL_LEVEL, 'pg_wal') walk") >= {"slot", "lsn", "wal"}
    assert "wal" not in words_of("walk wallet")


def test_the_words_of_an_engine_stay_in_its_rooms() -> None:
    allowed = (*OF_AN_ENGINE, *OF_A_SERVER_OR_AN_EVENT)
    found = {
        f"{path}:{number}: {word}"
        for path, text in sources()
        if not is_in(path, allowed)
        for number, line in enumerate(text.splitlines(), start=1)
        if not line.startswith(("from ", "import "))  # Another test is about them.
        for word in words_of(line).intersection(WORDS)
    }
    assert sorted(found) == []


@pytest.mark.parametrize("room", [*OF_AN_ENGINE, *OF_A_SERVER_OR_AN_EVENT])
def test_every_room_that_may_use_the_words_does(room: str) -> None:
    texts = [text for path, text in sources() if is_in(path, (room,))]
    assert any(words_of(text).intersection(WORDS) for text in texts)


@pytest.mark.parametrize(
    "text", ['source.engine == "dynamodb"', 'engine in ("postgres", "x")', 'match e:\n case "postgres": pass']
)
def test_a_question_for_an_engine_is_found(text: str) -> None:
    assert list(questions_for_an_engine(text)) == [1 + text.count("\n")]
    assert not list(questions_for_an_engine('engine == other; engines = {"postgres": 1}'))


def test_no_module_compares_an_engine_s_name() -> None:
    found = [f"{path}:{line}" for path, text in modules() for line in questions_for_an_engine(text)]
    assert found == []


def questions_for_an_engine(text: str) -> Iterator[int]:
    """Yield the lines that compare an engine's name, or match on it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare | ast.MatchValue):
            constants = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            if any(isinstance(constant, str) and constant in SOURCES for constant in constants):
                yield node.lineno


@pytest.mark.parametrize("package", ONLY_REGISTRIES_IMPORT)
def test_only_a_registry_imports_an_engine(package: str) -> None:
    rooms = (*OF_AN_ENGINE, *ONLY_REGISTRIES_IMPORT[package], *OF_A_SERVER_OR_AN_EVENT)
    importers = {path for path, text in modules() if package in imported_by(text)}
    assert {path for path in importers if not is_in(path, rooms)} == set()
    assert importers & set(ONLY_REGISTRIES_IMPORT[package])


@cache
def imported_by(text: str) -> frozenset[str]:
    """Return the modules that a module imports, and their packages."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(name.rsplit(".", levels)[0] for name in names for levels in range(name.count(".") + 1))

"""The drivers that DBeaver and Metabase use for MySQL find the lake's tables and columns, and read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from connectors.plugins import build_plugins, unpack_plugins
from tests.conftest import running_jvm
from tests.ports import free_port
from tests.sql_server.test_server import ORDERS, PEOPLE, ROWS, Lake
from tributary.api.sql import Limits
from tributary.sql_server.server import USER, Access, serving
from tributary.sql_server.session import ServedLake

pytestmark = pytest.mark.slow

OF_DBEAVER = {
    "engines": "SHOW ENGINES",
    "character sets": "SHOW CHARSET",
    "collations": "SHOW COLLATION",
    "plugins": "SHOW PLUGINS",
    "privileges": "SHOW PRIVILEGES",
    "databases": "SHOW DATABASES",
    "tables": "SHOW FULL TABLES FROM `shop.public`",
    "status": "SHOW TABLE STATUS FROM `shop.public`",
    "columns": "SELECT * FROM information_schema.COLUMNS "
    "WHERE TABLE_SCHEMA = 'shop.public' AND TABLE_NAME = 'orders' ORDER BY ORDINAL_POSITION",
    "one table": "SELECT * FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = 'shop.public'",
    "constraints": "SELECT kc.CONSTRAINT_NAME, kc.TABLE_NAME, kc.COLUMN_NAME, kc.ORDINAL_POSITION "
    "FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE kc WHERE kc.TABLE_SCHEMA = 'shop.public' "
    "AND kc.REFERENCED_TABLE_NAME IS NULL ORDER BY kc.CONSTRAINT_NAME, kc.ORDINAL_POSITION",
    "definition": "SHOW CREATE TABLE `shop.public`.orders",
}
EMPTY = {"plugins", "constraints"}
"""What MySQL would list, and a lake does not have."""
NUMBERS = {"id": 19, "small": 10, "large": 20, "amount": 38}
"""The digits of the columns of whole and decimal numbers."""


@pytest.fixture(scope="module")
def address() -> Iterator[Access]:
    columns = {name: pa.array(values, type_) for name, (type_, values, _) in ROWS.items()}
    lake = Lake({ORDERS: pa.table(columns), PEOPLE: pa.table({"id": [1, 2, 3]})})
    access = Access(free_port(), "a password for tests")
    with serving(ServedLake(lake, Limits(2, "100MB")), access):
        yield access


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """A JVM with the drivers that come with Debezium's connectors."""
    plugins = unpack_plugins(build_plugins())
    drivers = [next(plugins.rglob(f"{name}-*.jar")) for name in ("mysql-connector-j", "mariadb-java-client")]
    with running_jvm(drivers) as running:
        yield running


@pytest.fixture(scope="module", params=["mysql", "mariadb"])
def connection(jvm: Any, address: Access, request: pytest.FixtureRequest) -> Iterator[Any]:
    drivers = {"mysql": jvm.com.mysql.cj.jdbc.Driver, "mariadb": jvm.org.mariadb.jdbc.Driver}
    login = jvm.java.util.Properties()
    login.setProperty("user", USER)
    login.setProperty("password", address.password)
    opened = drivers[request.param]().connect(f"jdbc:{request.param}://127.0.0.1:{address.port}/", login)
    yield opened
    opened.close()


def rows_of(found: Any, *columns: str) -> list[tuple[str | None, ...]]:
    rows = []
    while found.next():
        rows.append(tuple(found.getString(column) for column in columns))
    return rows


def test_the_driver_finds_tables_and_columns_with_their_types(connection: Any) -> None:
    metadata = connection.getMetaData()
    tables = rows_of(metadata.getTables("shop.public", None, "%", None), "TABLE_NAME")
    columns = metadata.getColumns("shop.public", None, "ord_rs", "%")
    found = {
        name: (type_, size)
        for name, type_, size in rows_of(columns, "COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE")
    }
    assert tables == [("orders",)]
    assert list(found) == list(ROWS)
    assert {name: int(found[name][1] or 0) for name in NUMBERS} == NUMBERS
    assert (found["name"][0], found["day"][0]) == ("LONGTEXT", "DATE")
    assert rows_of(metadata.getColumns("shop.public", None, "ord\\_rs", "%"), "COLUMN_NAME") == []
    for nothing in (metadata.getPrimaryKeys, metadata.getImportedKeys):
        assert rows_of(nothing("shop.public", None, "orders")) == []


@pytest.mark.parametrize("what", OF_DBEAVER)
def test_what_dbeaver_asks_is_answered(connection: Any, what: str) -> None:
    found = rows_of(connection.createStatement().executeQuery(OF_DBEAVER[what]))
    assert (found == []) == (what in EMPTY)


def test_the_rows_arrive_exactly_also_by_a_prepared_statement(connection: Any) -> None:
    exact = ("id", "large", "amount", "name")
    sql = "SELECT * FROM `shop.public`.orders ORDER BY id DESC LIMIT 200"
    expected = [
        tuple(None if value is None else str(value) for value in row)
        for row in zip(*(ROWS[name][1] for name in exact), strict=True)
    ]
    assert rows_of(connection.createStatement().executeQuery(sql), *exact) == expected
    prepared = connection.prepareStatement("SELECT name FROM `shop.public`.orders WHERE id = ?")
    prepared.setLong(1, 1)
    assert rows_of(prepared.executeQuery(), "name") == [(ROWS["name"][1][0],)]

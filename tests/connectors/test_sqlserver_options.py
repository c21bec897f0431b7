"""Debezium's connector for SQL Server takes the rendered options, and gives each the meant meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from py4j.java_gateway import get_field

from connectors.certificates import STORE_PASSWORD
from connectors.engines.sqlserver.engine import SqlServerEngine
from connectors.engines.sqlserver.preparation import heartbeat_query
from connectors.engines.sqlserver.signals import collection_of
from tests.connectors.deployments import aws_deployment, local_deployment
from tests.connectors.test_options_in_connect import _of_connect
from tributary.contract.engines.sqlserver import SqlServerSource
from tributary.contract.lake import Lake, parse_lake
from tributary.contract.online_snapshot import Request
from tributary.contract.table_name import TableName

pytestmark = pytest.mark.slow

ENGINE = SqlServerEngine()
UNLISTED = (
    "event.converting.failure.handling.mode",
    "include.schema.changes",
    "snapshot.locking.mode",
    # Options of the JDBC driver.
    "driver.",
    # The history's clients take all options of Kafka's.
    "schema.history.internal.producer.",
    "schema.history.internal.consumer.",
)


def lake_of(connection: str = "", database: str = "ERP") -> Lake:
    return parse_lake(
        f"""
        [lake]
        name = "shop"
        [source.erp]
        engine = "sqlserver"
        database = "{database}"
        tables = ["dbo.*", "sales_?.order_*", "!dbo.tmp"]
        [table."erp.dbo.Order Items"]
        key = ["order,id", "line:no"]
        {connection}
        """
    )


def source_of(lake: Lake) -> SqlServerSource:
    source = lake.source("erp")
    assert isinstance(source, SqlServerSource)
    return source


def rendered(lake: Lake, deployed: Any = local_deployment) -> dict[str, str]:
    source, deployment = source_of(lake), deployed(lake)
    password = deployment.databases["erp"].password
    access = ENGINE.access(lake, source, "db.example.org", 1433, password)
    return dict(ENGINE.render(lake, source, replace(deployment, databases={"erp": access})).config)


def read_by(jvm: Any, options: Mapping[str, str]) -> Any:
    return getattr(jvm.io.debezium.config.Configuration, "from")(dict(options))


def config_of(jvm: Any, options: Mapping[str, str]) -> Any:
    return jvm.io.debezium.connector.sqlserver.SqlServerConnectorConfig(read_by(jvm, options))


def topic_names(jvm: Any, config: Any) -> Any:
    """Return the strategy that names topics, as SqlServerConnectorTask asks for it."""
    return config.getTopicNamingStrategy(
        jvm.io.debezium.config.CommonConnectorConfig.TOPIC_NAMING_STRATEGY, True
    )


@pytest.mark.parametrize("deployed", [local_deployment, aws_deployment], ids=["here", "on AWS"])
def test_debezium_knows_every_option_and_takes_every_value(sqlserver: Any, deployed: Any) -> None:
    options = rendered(lake_of(), deployed)
    config_class = sqlserver.io.debezium.connector.sqlserver.SqlServerConnectorConfig
    history = sqlserver.io.debezium.storage.kafka.history.KafkaSchemaHistory
    known = {*config_class.configDef().names(), *(field.name() for field in history.ALL_FIELDS.asArray())}
    known |= {field.name() for field in config_class.ALL_FIELDS.asArray()}

    unknown = {option for option in options if option not in known and not option.startswith(UNLISTED)}
    assert unknown == set(_of_connect(options))
    checked = read_by(sqlserver, options).validate(config_class.ALL_FIELDS)
    assert [error for value in checked.values() for error in value.errorMessages()] == []


def test_debezium_reads_the_modes_that_lose_nothing(sqlserver: Any) -> None:
    config = config_of(sqlserver, rendered(lake_of()))

    assert config.getDataQueryMode().getValue() == "direct"
    assert config.getStreamingFetchSize() == 0
    assert config.getSnapshotIsolationMode().getValue() == "snapshot"
    assert config.getSnapshotLockingMode().get().getValue() == "none"
    assert config.getTemporalPrecisionMode().getValue() == "microseconds"
    assert config.getEventConvertingFailureHandlingMode().getValue() == "fail"
    assert list(config.getDatabaseNames()) == ["ERP"]


def test_debezium_moves_its_offset_in_a_quiet_database(sqlserver: Any) -> None:
    lake = lake_of()
    config = config_of(sqlserver, rendered(lake))

    assert config.getHeartbeatActionQuery() == heartbeat_query(lake, source_of(lake))
    assert config.getHeartbeatInterval().toMillis() == 5000


@pytest.mark.parametrize(
    ("schema", "table"), [("dbo", "Orders"), ("sales_1", "order_ä"), ("DBO", "Orders"), ("dbo", "tmp")]
)
@pytest.mark.parametrize("database", ["ERP", "My-Shop_2"])
def test_debezium_takes_the_tables_and_names_the_topics_that_the_lake_expects(
    sqlserver: Any, database: str, schema: str, table: str
) -> None:
    lake = lake_of(database=database)
    config = config_of(sqlserver, rendered(lake))
    table_id = sqlserver.io.debezium.relational.TableId(database, schema, table)
    strategy = topic_names(sqlserver, config)

    is_taken = config.getTableFilters().dataCollectionFilter().isIncluded(table_id)

    assert is_taken == source_of(lake).matches(schema, table)
    names = lake.source_names(source_of(lake))
    assert strategy.dataChangeTopic(table_id) == names.topic(schema, table)
    assert strategy.heartbeatTopic() == names.heartbeat_topic
    found = lake.names.table_of_topic(names.topic(schema, table), [names])
    assert found == TableName("erp", schema, table)


def test_debezium_reads_its_signals_and_none_of_tributarys_other_tables(sqlserver: Any) -> None:
    lake = lake_of()
    options = rendered(lake)
    config = config_of(sqlserver, options)
    relational = sqlserver.io.debezium.relational
    taken = config.getTableFilters().dataCollectionFilter()

    assert taken.isIncluded(relational.TableId("ERP", "tributary", "signals_shop__erp"))
    assert not taken.isIncluded(relational.TableId("ERP", "tributary", "heartbeat"))
    signals = relational.TableId.parse(options["signal.data.collection"])
    assert (signals.catalog(), signals.schema(), signals.table()) == ("ERP", "tributary", "signals_shop__erp")
    strategy = topic_names(sqlserver, config)
    pattern = sqlserver.java.util.regex.Pattern.compile(options["predicates.isSignal.pattern"])
    assert pattern.matcher(strategy.dataChangeTopic(signals)).matches()


@pytest.mark.parametrize(("schema", "table"), [("dbo", "Orders"), ("sales_1", "order_ä+(x)")])
def test_debezium_reads_the_one_table_that_a_signal_names(sqlserver: Any, schema: str, table: str) -> None:
    request = Request("1", TableName("erp", schema, table), reasons=(), requested_us=0)
    pattern = sqlserver.java.util.regex.Pattern.compile(collection_of(source_of(lake_of()), request))

    def is_named(*parts: str) -> bool:
        return bool(pattern.matcher(sqlserver.io.debezium.relational.TableId(*parts).identifier()).matches())

    assert is_named("ERP", schema, table)
    assert not is_named("ERP", schema, f"{table}2")
    assert not is_named("ERP", f"x{schema}", table)


def test_debezium_takes_the_key_that_the_lake_file_names(sqlserver: Any) -> None:
    relational = sqlserver.io.debezium.relational
    editor = relational.Table.editor().tableId(relational.TableId("ERP", "dbo", "Order Items"))
    for name in ("id", "order,id", "line:no"):
        editor.addColumns([relational.Column.editor().name(name).type("int").create()])

    mapped = config_of(sqlserver, rendered(lake_of())).getKeyMapper().getKeyKolumns(editor.create())

    assert [column.name() for column in mapped] == ["order,id", "line:no"]


@pytest.mark.parametrize(
    ("entries", "encrypted", "is_trusted_blindly", "trust_store"),
    [
        ("", "true", "true", None),
        ('ssl_mode = "disabled"', "false", None, None),
        ('ssl_mode = "verified"\nca_file = "/c.pem"\ntrust_store = "/c.p12"', "true", "false", "/c.p12"),
    ],
)
def test_the_driver_encrypts_and_verifies_as_the_lake_file_says(
    sqlserver: Any, entries: str, encrypted: str, is_trusted_blindly: str | None, trust_store: str | None
) -> None:
    connection = f'[source.erp.connection]\nhost = "db"\npassword_env = "P"\n{entries}'
    config = config_of(sqlserver, rendered(lake_of(connection)))

    # JdbcConnection.patternBasedFactory hands these to the driver.
    copied = sqlserver.io.debezium.config.Configuration.copy(config.getJdbcConfig())
    given = copied.build().asProperties()
    names = ("encrypt", "trustServerCertificate", "trustStore", "trustStorePassword")
    password = STORE_PASSWORD if trust_store else None
    assert [given.get(name) for name in names] == [encrypted, is_trusted_blindly, trust_store, password]
    driver = sqlserver.com.microsoft.sqlserver.jdbc.SQLServerDriver()
    known = {get_field(info, "name") for info in driver.getPropertyInfo("jdbc:sqlserver://db", given)}
    assert {name for name in names if given.get(name)} <= known


def test_the_remedy_for_lost_changes_is_found_by_debeziums_own_words(sqlserver: Any) -> None:
    source = sqlserver.java.lang.Class.forName(
        "io.debezium.connector.common.BaseSourceTask",
        True,
        sqlserver.java.lang.Thread.currentThread().getContextClassLoader(),
    )
    resource = source.getResourceAsStream("BaseSourceTask.class").readAllBytes()
    assert b"The connector is trying to read change stream starting at" in bytes(resource)
    assert any(words.startswith("change stream starting at") for words in ENGINE.remedies())

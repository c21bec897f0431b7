"""Debezium's connectors for MySQL and MariaDB take the rendered options, and give each the meant meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from connectors.certificates import TRUST_STORE, TRUST_STORE_PASSWORD
from connectors.deployment import Deployment, MskIamKafka
from connectors.engines.binlog.engine import BinlogEngine
from connectors.engines.mariadb.engine import MariaDbEngine
from connectors.engines.mysql.engine import MySqlEngine
from connectors.plugins import build_plugins, unpack_plugins
from tests.conftest import running_jvm
from tests.connectors.deployments import aws_deployment, local_deployment
from tests.connectors.test_options_in_connect import _of_connect
from tributary.contract.engines.binlog import BinlogSource
from tributary.contract.lake import Lake, parse_lake

pytestmark = pytest.mark.slow

CONFIG_CLASSES = {"mysql": "mysql.MySqlConnectorConfig", "mariadb": "mariadb.MariaDbConnectorConfig"}
ENGINES: dict[str, BinlogEngine] = {"mysql": MySqlEngine(), "mariadb": MariaDbEngine()}
UNLISTED = (
    "binary.handling.mode",
    "event.converting.failure.handling.mode",
    "driver.yearIsDateType",
    "driver.allowPublicKeyRetrieval",
    # The history's clients take all options of Kafka's.
    "schema.history.internal.producer.",
    "schema.history.internal.consumer.",
)


def lake_of(engine: str, tables: str = '["shop.*", "sales_?.order_*", "!shop.tmp"]', more: str = "") -> Lake:
    return parse_lake(f'[lake]\nname = "shop"\n[source.web]\nengine = "{engine}"\ntables = {tables}\n{more}')


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any]]:
    """An engine's name, and a JVM with its connector."""
    name = str(request.param)
    plugins = unpack_plugins(build_plugins(names=(f"debezium-connector-{name}",)))
    with running_jvm([folder / "*" for folder in plugins.iterdir()]) as jvm:
        yield name, jvm


def class_of(jvm: Any, name: str) -> Any:
    for part in name.split("."):
        jvm = getattr(jvm, part)
    return jvm


def config_of(jvm: Any, engine: str, lake: Lake, deployment: Deployment) -> tuple[dict[str, str], Any, Any]:
    """Return the rendered options, Debezium's reading of them, and the class of its config."""
    source = lake.source("web")
    assert isinstance(source, BinlogSource)
    is_on_aws = isinstance(deployment.kafka, MskIamKafka)
    encrypted = (
        ENGINES[engine].verified_on_aws() if is_on_aws else ENGINES[engine].encryption(is_required=True)
    )
    access = replace(deployment.databases["web"], options=encrypted)
    there = replace(deployment, databases={"web": access})
    options = dict(ENGINES[engine].render(lake, source, there).config)
    config_class = class_of(jvm, f"io.debezium.connector.{CONFIG_CLASSES[engine]}")
    return options, getattr(jvm.io.debezium.config.Configuration, "from")(options), config_class


def test_a_connector_on_aws_can_verify_certificate_and_name(engine: tuple[str, Any]) -> None:
    name, jvm = engine
    lake = lake_of(name)
    options, read, _ = config_of(jvm, name, lake, aws_deployment(lake))
    title = {"mysql": "MySql", "mariadb": "MariaDb"}[name]
    package = class_of(jvm, f"io.debezium.connector.{name}")
    modes = getattr(package, f"{title}ConnectorConfig${title}SecureConnectionMode")
    mode = modes.parse(options["database.ssl.mode"])
    assert mode.name() in ("VERIFY_IDENTITY", "VERIFY_FULL")
    assert read.getString("database.ssl.truststore") == TRUST_STORE
    assert options["database.ssl.truststore.password"] == TRUST_STORE_PASSWORD


@pytest.mark.parametrize("deployed", [local_deployment, aws_deployment], ids=["here", "on AWS"])
def test_debezium_knows_every_option_and_takes_every_value(engine: tuple[str, Any], deployed: Any) -> None:
    name, jvm = engine
    lake = lake_of(name)
    options, read, config_class = config_of(jvm, name, lake, deployed(lake))
    history = jvm.io.debezium.storage.kafka.history.KafkaSchemaHistory
    known = {*class_of(jvm, options["connector.class"])().config().names()}
    known |= {field.name() for field in history.ALL_FIELDS.asArray()}
    unknown = {option for option in options if option not in known and not option.startswith(UNLISTED)}
    assert unknown == set(_of_connect(options))
    checked = read.validate(config_class.ALL_FIELDS)
    assert [error for value in checked.values() for error in value.errorMessages()] == []


@pytest.mark.parametrize(
    ("database", "table"), [("shop", "orders"), ("sales_1", "order_ä"), ("SHOP", "x"), ("shop", "tmp")]
)
def test_debezium_takes_the_tables_and_names_the_topics_that_the_lake_expects(
    engine: tuple[str, Any], database: str, table: str
) -> None:
    name, jvm = engine
    lake = lake_of(name)
    _, read, config_class = config_of(jvm, name, lake, local_deployment(lake))
    debezium = config_class(read)
    table_id = jvm.io.debezium.relational.TableId(database, None, table)
    strategy = debezium.getTopicNamingStrategy(config_class.TOPIC_NAMING_STRATEGY)

    is_taken = debezium.getTableFilters().dataCollectionFilter().isIncluded(table_id)

    assert is_taken == lake.source("web").matches(database, table)
    names = lake.source_names(lake.source("web"))
    assert strategy.dataChangeTopic(table_id) == names.topic(database, table)
    assert strategy.heartbeatTopic() == names.heartbeat_topic


def test_debezium_reads_the_definitions_of_the_lakes_databases_and_of_no_others(
    engine: tuple[str, Any],
) -> None:
    name, jvm = engine
    lake = lake_of(name)
    _, read, config_class = config_of(jvm, name, lake, local_deployment(lake))
    is_read = config_class(read).getTableFilters().databaseFilter()
    databases = ("shop", "tributary", "sales_1", "sales_12", "other", "SHOP")
    assert [database for database in databases if is_read.test(database)] == ["shop", "tributary", "sales_1"]


@pytest.mark.parametrize("left_out", [(), ("secret",)])
def test_an_online_snapshot_names_all_columns_because_select_star_lacks_invisible_ones(
    engine: tuple[str, Any], left_out: tuple[str, ...]
) -> None:
    name, jvm = engine
    lake = lake_of(
        name, more=f'[table."web.shop.orders"]\nleave_out = {list(left_out)}\n' if left_out else ""
    )
    _, read, config_class = config_of(jvm, name, lake, local_deployment(lake))
    debezium = config_class(read)

    columns = ("id", "hidden", "secret", "ä b")
    taken = [one for one in columns if debezium.getColumnFilter().matches("shop", None, "orders", one)]

    assert debezium.isColumnsFiltered()
    assert taken == [one for one in columns if one not in left_out]


WRONG_LETTERS = {
    "armscii8": ("B2", "Ա"),
    "cp932": ("93FA", "日"),
    "dec8": ("D7", "Œ"),
    "euckr": ("8141", "갂"),
    "geostd8": ("C0", "ა"),
    "hp8": ("A1", "À"),
    "keybcs2": ("80", "Č"),
    "koi8u": ("A6", "і"),
    "swe7": ("5B", "Ä"),
}


@pytest.mark.parametrize("charset", WRONG_LETTERS)
def test_debezium_reads_the_refused_character_sets_wrong_and_no_others_of_them(
    engine: tuple[str, Any], charset: str
) -> None:
    name, jvm = engine
    title = {"mysql": "MySql", "mariadb": "MariaDb"}[name]
    registry = class_of(jvm, f"io.debezium.connector.{name}.charset.{title}CharsetRegistry")()
    written, letter = WRONG_LETTERS[charset]
    read = jvm.java.lang.String(bytes.fromhex(written), registry.getJavaEncodingForCharSet(charset))
    assert (read != letter) == (charset in ENGINES[name].rules.unreadable)
    assert set(WRONG_LETTERS) >= ENGINES[name].rules.unreadable

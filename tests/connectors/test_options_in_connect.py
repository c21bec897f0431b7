"""Connect's own classes accept the rendered options, and give each the intended meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from connectors import iceberg_sink
from connectors.deployment import MAX_EVENT_MB, Deployment, PlaintextKafka
from connectors.engines.postgres import connector as debezium_postgres
from connectors.engines.registry import engine_of
from connectors.worker import as_properties, local_worker
from tests.connectors.deployments import LAKE, aws_deployment, local_deployment
from tests.contract.lake_files import IDENTIFIERS, LAKE_NAMES, SOURCE_NAMES, lake_files, toml
from tests.contract.test_patterns import NAMES, PATTERN_SETS
from tests.postgres_source import postgres_source
from tests.soak import SOAKS
from tributary.contract.lake import Lake, parse_lake
from tributary.contract.naming import LakeNames
from tributary.contract.patterns import TablePatterns
from tributary.contract.source import Source
from tributary.contract.topic_form import SCHEMA_AND_TABLE

pytestmark = pytest.mark.slow

DEPLOYMENTS = [local_deployment(), aws_deployment()]
each_deployment = pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=["here", "on AWS"])
in_one_jvm = settings(deadline=None, max_examples=20)


@each_deployment
@pytest.mark.parametrize("source", LAKE.sources, ids=lambda source: source.name)
def test_debezium_knows_every_option_and_takes_every_value(
    jvm: Any, source: Source, deployment: Deployment
) -> None:
    config = engine_of(source).render(LAKE, source, deployment).config
    postgres = jvm.io.debezium.connector.postgresql.PostgresConnectorConfig
    # Debezium reads these options but does not list them.
    unlisted = ("event.converting.failure.handling.mode", "include.schema.changes")
    of_driver = {option for option in config if option.startswith("driver.")}
    known = {*postgres.configDef().names(), *unlisted, *of_driver}
    driver = jvm.org.postgresql.PGProperty
    assert all(driver.forName(option.removeprefix("driver.")) is not None for option in of_driver)
    assert {option for option in config if option not in known} == set(_of_connect(config))
    checked = _configuration(jvm, config).validate(postgres.ALL_FIELDS)
    assert not [error for value in checked.values() for error in value.errorMessages()]
    assert _debezium(jvm, config).getEventConvertingFailureHandlingMode().getValue() == "fail"
    assert not _debezium(jvm, config).isSchemaChangesHistoryEnabled()


def test_connect_knows_every_option_that_is_not_debeziums(jvm: Any) -> None:
    config = debezium_postgres.render(LAKE, postgres_source(LAKE), local_deployment()).config
    kafka = jvm.org.apache.kafka
    json = kafka.connect.json.JsonConverterConfig.configDef().names()
    topics = kafka.connect.runtime.TopicCreationConfig
    of_topics = [
        *topics.defaultGroupConfigDef().names(),
        *kafka.storage.internals.log.LogConfig.configNames(),
    ]
    known: dict[str, Iterable[str]] = {
        "key.converter.": json,
        "value.converter.": json,
        "header.converter.": json,
        "producer.override.": kafka.clients.producer.ProducerConfig.configNames(),
        "": [
            *kafka.connect.runtime.ConnectorConfig.configDef().names(),
            kafka.connect.runtime.SourceConnectorConfig.TOPIC_CREATION_GROUPS_CONFIG,
        ],
        "topic.creation.default.": of_topics,
        "topic.creation.own.": [*of_topics, topics.INCLUDE_REGEX_CONFIG],
    }
    known |= _of_transforms(jvm, config)
    assert not _unknown(_of_connect(config), known)
    assert config["topic.creation.default.max.message.bytes"] == str(MAX_EVENT_MB * 2**20)


def test_connect_creates_the_connectors_own_topics_with_one_partition(jvm: Any) -> None:
    """Their messages are read in order, whatever the tables of the lake need."""
    lake = parse_lake(
        """
        [lake]
        name = "shop"

        [source.web]
        engine = "postgres"
        database = "app"
        tables = ["public.*"]
        partitions = 3
        """
    )
    config = debezium_postgres.render(lake, postgres_source(lake), local_deployment(lake)).config
    groups = _creation_groups(jvm, config)
    wanted = {
        "shop.web.public.orders": 3,
        "shop.web.tributary.heartbeats": 3,
        "__debezium-heartbeat.shop.web": 1,
        "__tributary.shop.web.notifications": 1,
        "x__tributary.shop.web.notifications": 3,
    }
    for topic, partitions in wanted.items():
        group = next(group for group in groups if group.matches(topic))
        created = group.newTopic(topic)
        assert created.numPartitions() == partitions, topic
        assert created.configs()["max.message.bytes"] == str(MAX_EVENT_MB * 2**20)


def _creation_groups(jvm: Any, config: Mapping[str, str]) -> list[Any]:
    """Return the groups of topics in Connect's order: the named ones, then the default."""
    kafka = jvm.org.apache.kafka.connect
    mine = {option: text for option, text in config.items() if option.startswith(("connector.", "topic."))}
    parsed = kafka.runtime.SourceConnectorConfig(None, {"name": "any", **mine}, True)
    return list(kafka.util.TopicCreationGroup.configuredGroups(parsed).values())


def _of_transforms(jvm: Any, config: Mapping[str, str]) -> dict[str, Iterable[str]]:
    """Return the options of the config's transforms and predicates, by their prefix."""
    return {
        f"{kind}.{alias}.": [*_new(jvm, config[f"{kind}.{alias}.type"]).config().names(), "type", "predicate"]
        for kind in ("transforms", "predicates")
        for alias in config[kind].split(",")
    }


@each_deployment
def test_the_sink_and_its_transforms_know_every_option(jvm: Any, deployment: Deployment) -> None:
    config = iceberg_sink.render(LAKE, deployment).config
    kafka, iceberg = jvm.org.apache.kafka, jvm.org.apache.iceberg.connect.IcebergSinkConfig
    known: dict[str, Iterable[str]] = {
        "": [*kafka.connect.runtime.SinkConnectorConfig.configDef().names(), *iceberg.CONFIG_DEF.names()],
        "consumer.override.": kafka.clients.consumer.ConsumerConfig.configNames(),
        "iceberg.kafka.": kafka.clients.consumer.ConsumerConfig.configNames(),
    }
    known |= _of_transforms(jvm, config)
    free = ("iceberg.catalog.", "iceberg.tables.auto-create-props.", "iceberg.tables.write-props.")
    assert not {option for option in _unknown(config, known) if not option.startswith(free)}


def test_the_sink_reads_the_intended_values_from_its_config(jvm: Any) -> None:
    config = dict(iceberg_sink.render(LAKE, local_deployment()).config)
    sink = jvm.org.apache.iceberg.connect.IcebergSinkConfig({**config, "name": "sink", "task.id": "sink-0"})
    names = LAKE.names
    assert list(sink.tables()) == [names.bronze_table]
    assert sink.catalogName() == names.bronze_catalog
    assert sink.controlTopic() == names.bronze_control_topic
    assert sink.controlGroupIdPrefix() == names.bronze_control_group_prefix
    assert sink.transactionalPrefix() == names.bronze_transactional_prefix
    assert sink.catalogProps()["warehouse"] == "s3://shop-bronze"
    assert sink.autoCreateProps()["write.metadata.previous-versions-max"] == "20"
    assert sink.writeProps()["write.parquet.page-size-bytes"] == "65536"
    assert dict(sink.kafkaProps()) == {"bootstrap.servers": "127.0.0.1:19092"}
    assert sink.evolveSchemaEnabled()


def test_the_worker_knows_every_property(jvm: Any) -> None:
    properties = local_worker(LAKE.names, PlaintextKafka("127.0.0.1:19092"), 18083, "/plugins")
    known = set(jvm.org.apache.kafka.connect.runtime.distributed.DistributedConfig(properties).values())
    assert set(properties) - known == {"config.providers.directory.class"}
    _new(jvm, properties["config.providers.directory.class"]).close()


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        st.text(st.characters(exclude_categories=["Cs"])),
        max_size=5,
    )
)
@example({"a b:=#!\\": " ü😀\n\\x "})
@in_one_jvm
def test_java_reads_the_intended_values_from_a_properties_file(jvm: Any, properties: dict[str, str]) -> None:
    read = jvm.java.util.Properties()
    read.load(jvm.java.io.StringReader(as_properties(properties)))
    assert dict(read) == properties


@given(LAKE_NAMES, SOURCE_NAMES, IDENTIFIERS, IDENTIFIERS)
@example("tickit", "box_office", "public", "order_items")
@example("tickit", "shop", "Ünï", "łódź\n\x01")
@example("tickit", "shop", "public", "😀中")
@in_one_jvm
def test_debezium_gives_a_table_the_topic_that_we_expect(
    jvm: Any, lake: str, source: str, schema: str, table: str
) -> None:
    names = LakeNames(lake).source(source, SCHEMA_AND_TABLE)
    assume(names.topic_problem(schema, table) is None)
    config = _of_one_source(lake, source, '["*.*"]')
    strategy = _debezium(jvm, config).getTopicNamingStrategy(
        jvm.io.debezium.config.CommonConnectorConfig.TOPIC_NAMING_STRATEGY
    )
    assert strategy.dataChangeTopic(_table_id(jvm, schema, table)) == names.topic(schema, table)
    assert strategy.heartbeatTopic() == names.heartbeat_topic


@given(PATTERN_SETS, NAMES, NAMES)
@example(TablePatterns.parse(("public.*", "!public.audit")), "public", "audit\n")
@example(TablePatterns.parse(("public.*",)), "PUBLIC", "a")
@example(TablePatterns.parse(("*.*",)), "public", "ła")
@example(TablePatterns.parse(("*.😀?",)), "public", "😀中")
@in_one_jvm
def test_debezium_takes_the_tables_that_the_patterns_take(
    jvm: Any, patterns: TablePatterns, schema: str, table: str
) -> None:
    texts = [str(pattern) for pattern in patterns.include] + [f"!{pattern}" for pattern in patterns.exclude]
    assume(not any(str(pattern).startswith("!") for pattern in patterns.include))
    config = _of_one_source("shop", "shop", toml({"x": texts}).removeprefix('"x" = ').strip())
    is_taken = _debezium(jvm, config).getTableFilters().dataCollectionFilter()
    # Debezium's own list of PostgreSQL's system schemas, which no pattern can include.
    assume(schema.lower() not in {"pg_catalog", "information_schema"})
    assert is_taken.isIncluded(_table_id(jvm, schema, table)) == patterns.matches(schema, table)


@given(
    st.lists(IDENTIFIERS, min_size=2, max_size=5, unique=True).flatmap(
        lambda columns: st.tuples(
            st.just(columns), st.lists(st.sampled_from(columns), min_size=1, unique=True)
        )
    ),
    IDENTIFIERS,
    IDENTIFIERS,
)
@example((["id", "a,b", "c:d", "e;f"], ["e;f", "a,b", "c:d"]), "public", "Order Items")
@in_one_jvm
def test_debezium_takes_the_key_that_the_lake_file_names(
    jvm: Any, columns_and_key: tuple[list[str], list[str]], schema: str, table: str
) -> None:
    columns, key = columns_and_key
    # Debezium's tables cannot have two columns whose names differ only in case.
    assume(len({column.lower() for column in columns}) == len(columns))
    assume(LakeNames("shop").source("shop", SCHEMA_AND_TABLE).topic_problem(schema, table) is None)
    assume(schema != "tributary" and not any("." in column for column in columns))
    entry = toml({"table": {_name(schema, table): {"key": key}}})
    config = _of_one_source("shop", "shop", '["*.*"]', entry)
    mapped = _debezium(jvm, config).getKeyMapper().getKeyKolumns(_table(jvm, schema, table, columns))
    assert [column.name() for column in mapped] == key
    for other in (f"{table}2", table.swapcase()):
        unmapped = _debezium(jvm, config).getKeyMapper().getKeyKolumns(_table(jvm, schema, other, columns))
        assert other == table or list(unmapped) == []


@given(lake_files())
@settings(deadline=None, max_examples=100 if SOAKS else 6)
def test_debezium_takes_the_config_of_every_valid_lake(jvm: Any, file: dict[str, Any]) -> None:
    lake = parse_lake(toml(file))
    fields = jvm.io.debezium.connector.postgresql.PostgresConnectorConfig.ALL_FIELDS
    for source in lake.sources:
        config = engine_of(source).render(lake, source, local_deployment(lake)).config
        checked = _configuration(jvm, config).validate(fields)
        assert not [error for value in checked.values() for error in value.errorMessages()]


_CONNECTS_OWN = (
    "connector.class",
    "tasks.max",
    "errors.",
    "config.action.reload",
    "key.converter",
    "value.converter",
    "header.converter",
    "producer.override.",
    "topic.creation.",
    "predicates",
    "transforms",
)


def _of_connect(config: Mapping[str, str]) -> dict[str, str]:
    """Return the options that are for Connect, not for the connector."""
    return {option: value for option, value in config.items() if option.startswith(_CONNECTS_OWN)}


def _unknown(options: Iterable[str], known: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the options that are not in `known`, which is by prefix."""
    every = {f"{prefix}{name}" for prefix, names in known.items() for name in names}
    return set(options) - every


def _of_one_source(lake: str, source: str, tables: str, more: str = "") -> Mapping[str, str]:
    text = f"""
    [source.{source}]
    engine = "postgres"
    database = "app"
    tables = {tables}
    [lake]
    name = "{lake}"
    """
    parsed: Lake = parse_lake(f"{more}{text}")
    return debezium_postgres.render(parsed, postgres_source(parsed), local_deployment(parsed)).config


def _name(schema: str, table: str) -> str:
    quoted = [part.replace('"', '""') for part in (schema, table)]
    return f'shop."{quoted[0]}"."{quoted[1]}"'


def _configuration(jvm: Any, config: Mapping[str, str]) -> Any:
    return getattr(jvm.io.debezium.config.Configuration, "from")(dict(config))


def _debezium(jvm: Any, config: Mapping[str, str]) -> Any:
    return jvm.io.debezium.connector.postgresql.PostgresConnectorConfig(_configuration(jvm, config))


def _table_id(jvm: Any, schema: str, table: str) -> Any:
    return jvm.io.debezium.relational.TableId("app", schema, table)


def _table(jvm: Any, schema: str, table: str, columns: list[str]) -> Any:
    """Return a table without a primary key."""
    relational = jvm.io.debezium.relational
    editor = relational.Table.editor().tableId(_table_id(jvm, schema, table))
    for column in columns:
        one = relational.Column.editor().name(column).type("text").create()
        editor.addColumns([one])
    return editor.create()


def _new(jvm: Any, name: str) -> Any:
    """Return a new object of a class, which may be nested."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    constructors = jvm.java.lang.Class.forName(name, True, loader).getConstructors()
    plain = next(constructor for constructor in constructors if constructor.getParameterCount() == 0)
    return plain.newInstance(None)

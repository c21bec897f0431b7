"""The connectors on one machine and on AWS differ only in addresses and logins, and contain no secret."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors import iceberg_sink
from connectors.deployment import (
    ConnectorConfig,
    DirectorySecret,
    NoPlaceholder,
    SecretsManagerSecret,
)
from connectors.engines.postgres import connector as debezium_postgres
from connectors.engines.postgres.preparation import heartbeat_query
from connectors.engines.registry import engine_of
from tests.connectors.deployments import LAKE, aws_deployment, local_deployment
from tests.contract.lake_files import lake_files, toml
from tests.postgres_source import postgres_source
from tributary.contract.lake import parse_lake
from tributary.contract.patterns import OWN_SCHEMA

ADDRESS_OF_DEBEZIUM = {"database.hostname", "database.password", "database.sslmode", "database.sslrootcert"}
ADDRESS_OF_REGISTRY = {
    f"{part}.converter.{option}"
    for part in ("key", "value")
    for option in ("apicurio.registry.url", "schema.registry.url", "basic.auth.user.info")
}
ADDRESS_OF_SINK = {
    "iceberg.catalog.catalog-impl",
    "iceberg.catalog.uri",
    "iceberg.catalog.jdbc.user",
    "iceberg.catalog.jdbc.password",
    "iceberg.catalog.jdbc.schema-version",
    "iceberg.catalog.retryable_status_codes",
    "iceberg.catalog.warehouse",
    "iceberg.catalog.s3.endpoint",
    "iceberg.catalog.s3.path-style-access",
    "iceberg.catalog.client.region",
    "iceberg.kafka.bootstrap.servers",
    "iceberg.kafka.security.protocol",
    "iceberg.kafka.sasl.mechanism",
    "iceberg.kafka.sasl.jaas.config",
    # Part of a login with IAM: small brokers take few logins a second.
    "iceberg.kafka.reconnect.backoff.ms",
    "iceberg.kafka.reconnect.backoff.max.ms",
    "iceberg.kafka.sasl.client.callback.handler.class",
}


SALT = "transforms.maskedColumns.salt.password"


@given(lake_files())
def test_aws_and_one_machine_differ_only_in_addresses_credentials_and_authentication(
    file: dict[str, Any],
) -> None:
    lake = parse_lake(toml(file))
    here, there = local_deployment(lake), aws_deployment(lake)
    for source in lake.sources:
        one = engine_of(source).render(lake, source, here)
        other = engine_of(source).render(lake, source, there)
        assert one.name == other.name
        salt = {SALT} if lake.hashes_columns_of(source) else set()
        assert _difference(one, other) - ADDRESS_OF_REGISTRY == ADDRESS_OF_DEBEZIUM | salt
    one, other = iceberg_sink.render(lake, here), iceberg_sink.render(lake, there)
    assert one.name == other.name
    assert _difference(one, other) == ADDRESS_OF_SINK


@given(lake_files())
def test_every_password_is_a_placeholder(file: dict[str, Any]) -> None:
    lake = parse_lake(toml(file))
    for deployment in (local_deployment(lake), aws_deployment(lake)):
        renders = [engine_of(source).render(lake, source, deployment) for source in lake.sources]
        for render in (*renders, iceberg_sink.render(lake, deployment)):
            passwords = {key: value for key, value in render.config.items() if "password" in key}
            assert all(re.fullmatch(r"\$\{[a-z]+:[^:}]+:[^:}]+\}", value) for value in passwords.values())
        assert all("database.password" in render.config for render in renders)


def test_a_placeholder_refers_to_the_secret() -> None:
    here, there = local_deployment(), aws_deployment()
    source = postgres_source(LAKE, "crm")
    one = debezium_postgres.render(LAKE, source, here).config
    other = debezium_postgres.render(LAKE, source, there).config
    assert one["database.password"] == "${directory:/state/secrets:crm}"
    assert other["database.password"] == "${secretsmanager:shop/crm:password}"


@given(st.text(st.sampled_from("ab/:}"), min_size=1), st.text(st.sampled_from("ab:}"), min_size=1))
def test_a_secret_that_connect_would_parse_wrongly_is_refused(path: str, name: str) -> None:
    # The cases follow Kafka's ConfigTransformer.DEFAULT_PATTERN.
    pattern = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
    for secret in (DirectorySecret(path, name), SecretsManagerSecret(path, name)):
        try:
            placeholder = secret.placeholder
        except NoPlaceholder:
            assert set(path + name) & set(":}")
            continue
        match = pattern.fullmatch(placeholder)
        assert match is not None
        assert (match[3], match[4]) == (path, name)


def test_a_users_database_is_the_one_that_the_lake_file_names() -> None:
    lake = parse_lake(
        """
        [lake]
        name = "shop"
        [source.shop]
        engine = "postgres"
        database = "shop"
        tables = ["public.*"]
        [source.shop.connection]
        host = "db.example.org"
        port = 6432
        user = "replicator"
        password_env = "PASSWORD"
        sslmode = "verify-ca"
        sslrootcert = "/ca.pem"
        """
    )
    source, deployment = postgres_source(lake), local_deployment(lake)
    assert source.connection is not None
    access = debezium_postgres.access_at(
        lake, source, source.connection.host, source.connection.port, DirectorySecret("/s", "shop")
    )
    config = debezium_postgres.render(
        lake,
        source,
        type(deployment)(deployment.kafka, deployment.catalog, "shop-bronze", {"shop": access}),
    ).config
    expected = {
        "database.hostname": "db.example.org",
        "database.port": "6432",
        "database.user": "replicator",
        "database.password": "${directory:/s:shop}",
        "database.dbname": "shop",
        "database.sslmode": "verify-ca",
        "database.sslrootcert": "/ca.pem",
    }
    assert expected.items() <= config.items()


def test_defaults_that_lose_changes_or_values_are_overridden() -> None:
    config = debezium_postgres.render(LAKE, postgres_source(LAKE, "web_shop"), local_deployment()).config
    lossless = {
        "skipped.operations": "none",
        "tombstones.on.delete": "true",
        "decimal.handling.mode": "string",
        "column.propagate.source.type": ".*",
        "interval.handling.mode": "string",
        "include.unknown.datatypes": "true",
        "event.converting.failure.handling.mode": "fail",
        "key.converter.replace.null.with.default": "false",
        "value.converter.replace.null.with.default": "false",
        "key.converter.decimal.format": "NUMERIC",
        "value.converter.decimal.format": "NUMERIC",
        "publication.autocreate.mode": "disabled",
        "header.converter": "org.apache.kafka.connect.json.JsonConverter",
    }
    assert lossless.items() <= config.items()
    assert config["slot.name"] == "tributary_shop__web_shop"
    assert config["topic.creation.default.partitions"] == "3"
    assert config["heartbeat.action.query"] == heartbeat_query(LAKE, postgres_source(LAKE, "web_shop"))


def test_the_sink_converts_nothing_and_drops_nothing() -> None:
    config = iceberg_sink.render(LAKE, local_deployment()).config
    raw = "org.apache.kafka.connect.converters.ByteArrayConverter"
    assert {config[f"{part}.converter"] for part in ("key", "value", "header")} == {raw}
    assert "errors.tolerance" not in config
    assert config["iceberg.tables"] == "shop_bronze.events"
    assert config["iceberg.catalog"] == "bronze"
    assert config["iceberg.catalog.warehouse"] == "s3://shop-bronze"


def _difference(one: ConnectorConfig, other: ConnectorConfig) -> set[str]:
    return {key for key, _ in one.config.items() ^ other.config.items()}


@pytest.mark.parametrize("engine", ["mysql", "mariadb"])
@given(
    schemas=st.lists(st.from_regex(r"[A-Za-z$_?*,-]{1,8}", fullmatch=True), min_size=1),
    name=st.text(min_size=1),
)
def test_a_binlog_connector_defines_the_databases_that_its_patterns_name(
    engine: str, schemas: list[str], name: str
) -> None:
    of_source = {"engine": engine, "tables": [f"{schema}.*" for schema in schemas]}
    lake = parse_lake(toml({"lake": {"name": "shop"}, "source": {"web": of_source}}))
    source = lake.source("web")
    defines = engine_of(source).defines(engine_of(source).render(lake, source, local_deployment(lake)).config)
    assert defines is not None
    for schema in (name, *schemas):
        is_named = any(pattern.matches(schema, "t") for pattern in source.patterns.include)
        assert defines(schema) == (is_named or schema == OWN_SCHEMA)

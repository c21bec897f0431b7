"""The config provider reads AWS Secrets Manager (moto) from within the plugin that MSK Connect gets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from py4j.protocol import Py4JJavaError

from connectors.deployment import SecretsManagerSecret
from connectors.plugins import build_plugins, unpack_plugins
from connectors.worker import msk_sink_worker, msk_source_worker
from tests.conftest import running_jvm

pytestmark = pytest.mark.slow

REGION = "eu-west-1"
SET_BY_MSK = {
    "bootstrap.servers": "127.0.0.1:9098",
    "group.id": "__amazon_msk_connect_group",
    "config.storage.topic": "__amazon_msk_connect_configs",
    "status.storage.topic": "__amazon_msk_connect_status",
}
PASSWORD = 'a "quoted", {braced}: ${x:y} \\ ünï 密'


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """A worker's JVM, without a plugin on its class path."""
    with running_jvm() as running:
        yield running


@pytest.fixture(scope="module")
def secret(jvm: Any) -> Iterator[SecretsManagerSecret]:
    """A secret in a moto server that the JVM uses as AWS."""
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    url = f"http://{host}:{port}"
    properties = {
        "aws.endpointUrlSecretsManager": url,
        "aws.accessKeyId": "testing",
        "aws.secretAccessKey": "testing",
    }
    for name, value in properties.items():
        jvm.java.lang.System.setProperty(name, value)
    try:
        boto3.client(
            "secretsmanager", REGION, endpoint_url=url, aws_access_key_id="x", aws_secret_access_key="x"
        ).create_secret(
            Name="tributary/shop/web",
            SecretString=json.dumps({"username": "debezium", "password": PASSWORD, "port": 5432}),
        )
        yield SecretsManagerSecret("tributary/shop/web", "password")
    finally:
        for name in properties:
            jvm.java.lang.System.clearProperty(name)
        moto.stop()


@pytest.fixture(scope="module")
def provider(jvm: Any, secret: SecretsManagerSecret) -> Iterator[Any]:
    """The provider that a worker creates from its properties, with the plugin's own class loader."""
    assert secret
    runtime = jvm.org.apache.kafka.connect.runtime
    properties = {
        **SET_BY_MSK,
        **msk_source_worker("offsets", REGION),
        "offset.storage.topic": "offsets",
        "plugin.path": str(unpack_plugins(build_plugins())),
        "plugin.discovery": "service_load",
    }
    plugins = runtime.isolation.Plugins(properties)
    # A worker does this first (AbstractConnectCli.startConnect).
    plugins.compareAndSwapWithDelegatingLoader()
    config = runtime.distributed.DistributedConfig(properties)
    usage = getattr(runtime.isolation, "Plugins$ClassLoaderUsage").PLUGINS
    made = plugins.newConfigProvider(config, "config.providers.secretsmanager", usage)
    yield made
    made.close()


def test_connect_finds_the_provider_in_the_plugin_of_a_source(provider: Any) -> None:
    assert provider.getClass().getClassLoader().getClass().getSimpleName() == "PluginClassLoader"


def test_connect_resolves_a_placeholder_to_the_secrets_text(
    jvm: Any, provider: Any, secret: SecretsManagerSecret
) -> None:
    transformer = jvm.org.apache.kafka.common.config.ConfigTransformer({"secretsmanager": provider})
    resolved = transformer.transform({"database.password": secret.placeholder})
    assert dict(resolved.data()) == {"database.password": PASSWORD}


def test_a_secret_never_restarts_a_connector(jvm: Any, provider: Any, secret: SecretsManagerSecret) -> None:
    transformer = jvm.org.apache.kafka.common.config.ConfigTransformer({"secretsmanager": provider})
    assert dict(transformer.transform({"database.password": secret.placeholder}).ttls()) == {}


@pytest.mark.parametrize("key", ["Password", "port"])
def test_a_key_without_a_text_is_named_and_no_secret_is(provider: Any, key: str) -> None:
    with pytest.raises(Py4JJavaError) as caught:
        provider.get("tributary/shop/web", {key})
    told = str(caught.value.java_exception)
    assert f"tributary/shop/web lacks a text under one of the keys [{key}]" in told
    assert PASSWORD not in told


def test_a_worker_without_the_plugins_of_a_source_needs_no_provider(jvm: Any) -> None:
    properties = {**SET_BY_MSK, **msk_sink_worker(), "offset.storage.topic": "set-by-msk"}
    config = jvm.org.apache.kafka.connect.runtime.distributed.DistributedConfig(properties)
    assert list(config.getList("config.providers")) == []

"""The config providers in the plugin that MSK Connect gets: secrets (moto), and certificates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from py4j.protocol import Py4JJavaError

from connectors.certificates import PEM, RDS_ROOTS, TRUST_STORE, TRUST_STORE_PASSWORD
from connectors.deployment import SecretsManagerSecret
from connectors.plugins import build_plugins, unpack_plugins
from connectors.worker import msk_sink_worker, msk_source_worker
from tests.aws_double import running_moto
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
    with running_moto() as url:
        boto3.client(
            "secretsmanager", REGION, endpoint_url=url, aws_access_key_id="x", aws_secret_access_key="x"
        ).create_secret(
            Name="tributary/shop/web",
            SecretString=json.dumps({"username": "debezium", "password": PASSWORD, "port": 5432}),
        )
        properties = {
            "aws.endpointUrlSecretsManager": url,
            "aws.accessKeyId": "testing",
            "aws.secretAccessKey": "testing",
        }
        for name, value in properties.items():
            jvm.java.lang.System.setProperty(name, value)
        try:
            yield SecretsManagerSecret("tributary/shop/web", "password")
        finally:
            for name in properties:
                jvm.java.lang.System.clearProperty(name)


@pytest.fixture(scope="module")
def provider(jvm: Any, secret: SecretsManagerSecret) -> Iterator[Any]:
    """The provider of secrets."""
    assert secret
    yield from _provider(jvm, "secretsmanager")


@pytest.fixture(scope="module")
def certificates(jvm: Any) -> Iterator[Any]:
    """The provider of certificates."""
    yield from _provider(jvm, "certificates")


def _provider(jvm: Any, name: str) -> Iterator[Any]:
    """Yield the provider that a worker creates from its properties, with the plugin's own class loader."""
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
    made = plugins.newConfigProvider(config, f"config.providers.{name}", usage)
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


def test_a_worker_gets_the_roots_of_amazon_s_databases_as_files(jvm: Any, certificates: Any) -> None:
    transformer = jvm.org.apache.kafka.common.config.ConfigTransformer({"certificates": certificates})
    asked = {"pem": PEM, "truststore": TRUST_STORE, "password": TRUST_STORE_PASSWORD}
    found = dict(transformer.transform(asked).data())
    assert Path(found["pem"]).read_bytes() == RDS_ROOTS.read_bytes()
    roots = RDS_ROOTS.read_text().count("-----BEGIN CERTIFICATE-----")
    # Java reads the text with notes before the first certificate.
    factory = jvm.java.security.cert.CertificateFactory.getInstance("X.509")
    stream = jvm.java.io.FileInputStream(found["pem"])
    assert factory.generateCertificates(stream).size() == roots
    stream.close()
    # A connector names no type of the trust store, so Java's default type has to read it.
    kind = jvm.java.security.KeyStore.getDefaultType()
    password = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Character.TYPE, len(found["password"]))
    for at, character in enumerate(found["password"]):
        password[at] = character
    store = jvm.java.security.KeyStore.getInstance(kind)
    store.load(jvm.java.io.FileInputStream(found["truststore"]), password)
    assert store.size() == roots > 70


def test_the_files_are_written_once_for_all_connectors_of_a_worker(certificates: Any) -> None:
    first, second = (dict(certificates.get("rds").data()) for _ in range(2))
    assert first == second


def test_certificates_that_the_plugin_lacks_are_named(certificates: Any) -> None:
    with pytest.raises(Py4JJavaError) as caught:
        certificates.get("company", {"pem"})
    assert "no certificates company" in str(caught.value.java_exception)


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

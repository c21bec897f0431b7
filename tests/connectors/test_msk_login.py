"""The sink's own Kafka clients log in to MSK with the library that MSK Connect's workers bring.

The plugin must not contain that library. Java's security providers apply to the whole process, and a second
copy's classes would differ from the registered ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import spark_app
from connectors import iceberg_sink
from connectors.plugins import build_plugins, unpack_plugins
from connectors.worker import msk_sink_worker
from tests.conftest import running_jvm
from tests.connectors.deployments import LAKE, aws_deployment
from tributary.artifacts.fetch import fetch
from tributary.artifacts.lock import read_lock

pytestmark = pytest.mark.slow

SET_BY_MSK = {
    "bootstrap.servers": "127.0.0.1:9098",
    "group.id": "__amazon_msk_connect_group",
    "config.storage.topic": "__amazon_msk_connect_configs",
    "offset.storage.topic": "__amazon_msk_connect_offsets",
    "status.storage.topic": "__amazon_msk_connect_status",
}


@pytest.fixture(scope="module")
def worker() -> Iterator[Any]:
    """A worker's JVM as in MSK Connect with IAM: the library on the class path, and no plugin."""
    lock = read_lock(Path(spark_app.__file__).with_name("emr-jars.lock.json"))
    (login,) = (each for each in lock["emr"] if each.artifact == "aws-msk-iam-auth")
    with running_jvm(fetch([login]).values()) as running:
        yield running


@pytest.fixture(scope="module")
def sink_loader(worker: Any) -> Any:
    """The class loader of the Iceberg sink's plugin."""
    properties = {
        **SET_BY_MSK,
        **msk_sink_worker(),
        "plugin.path": str(unpack_plugins(build_plugins())),
        "plugin.discovery": "service_load",
    }
    plugins = worker.org.apache.kafka.connect.runtime.isolation.Plugins(properties)
    config = iceberg_sink.render(LAKE, aws_deployment()).config
    loader = plugins.connectorLoader(config["connector.class"])
    assert loader.getClass().getSimpleName() == "PluginClassLoader"
    return loader


def test_no_plugin_holds_the_library(worker: Any, sink_loader: Any) -> None:
    login = worker.java.lang.Class.forName("software.amazon.msk.auth.iam.IAMLoginModule", False, sink_loader)
    assert login.getClassLoader().getClass().getSimpleName() == "AppClassLoader"


def test_the_sink_s_kafka_client_is_created_with_its_options(worker: Any, sink_loader: Any) -> None:
    prefix = "iceberg.kafka."
    config = iceberg_sink.render(LAKE, aws_deployment()).config
    options = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
    options |= {"bootstrap.servers": "127.0.0.1:9098", "request.timeout.ms": "500"}
    assert options["sasl.mechanism"] == "AWS_MSK_IAM"
    thread = worker.java.lang.Thread.currentThread()
    before = thread.getContextClassLoader()
    thread.setContextClassLoader(sink_loader)
    try:
        # This loads the login module and the callback handler, and logs in.
        worker.org.apache.kafka.clients.admin.Admin.create(options).close()
    finally:
        thread.setContextClassLoader(before)

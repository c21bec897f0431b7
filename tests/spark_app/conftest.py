"""Fixtures that the tests share: a Kafka broker and a Glue server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_app.catalog.glue import glue_client
from spark_app.jvm import java_steps
from spark_app.plain import plain_steps
from spark_app.steps import steps
from spark_app.steps.steps import Steps
from tests.conftest import use_usual_steps
from tests.kafka_broker import kafka_broker
from tests.parameters import first_then_long
from tests.spark_app.glue import DATABASE, Glue

_WAYS = ("accelerated", "plain")


@pytest.fixture(params=(java_steps, plain_steps), ids=_WAYS)
def each_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the test with the steps in Java, and once more with the steps in plain PySpark."""
    yield from _with_steps(request, request.param)


@pytest.fixture(params=first_then_long((java_steps, plain_steps)), ids=_WAYS)
def each_way_if_long(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the test with the steps in Java, and `make test-long` also runs it with those in plain PySpark."""
    yield from _with_steps(request, request.param)


@pytest.fixture
def plainly(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the test with the steps in plain PySpark alone."""
    yield from _with_steps(request, plain_steps)


def _with_steps(request: pytest.FixtureRequest, used: Steps) -> Iterator[None]:
    request.getfixturevalue("spark")
    steps.use(used)
    yield
    use_usual_steps()


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Kafka broker."""
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="session")
def glue_server() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    running = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def glue_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


@pytest.fixture
def glue(glue_server: str, request: pytest.FixtureRequest) -> Iterator[Glue]:
    request.getfixturevalue("glue_environment")
    glue = Glue(glue_client(glue_server))
    glue.client.meta.events.register("before-call.glue", lambda model, **_: glue.requests.append(model.name))
    yield glue
    glue.client.delete_database(Name=DATABASE)

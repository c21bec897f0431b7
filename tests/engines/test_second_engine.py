"""A second engine needs only its lines in the registries. No other part of the project changes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from connectors import iceberg_sink
from connectors.connect_rest import ConnectorStatus, TaskStatus
from connectors.engines.registry import engine_of, engine_of_connector, source_plugins
from tests.engines.abacus import PORT, AbacusSource
from tests.engines.lakes import ABACUS, BEADS, CONNECTION, POSTGRES, lake_with, servers_of
from tributary.contract.lake import LakeFileError, parse_lake
from tributary.contract.remedies import Advice
from tributary.contract.table_name import TableName

pytestmark = pytest.mark.usefixtures("abacus")


# The lake file.


def test_a_second_engine_s_section_has_its_own_entries_with_defaults() -> None:
    lake = lake_with(frame='frame = "left"\n')
    counter = lake.source("counter")
    assert isinstance(counter, AbacusSource)
    assert counter.connection is not None
    assert (counter.frame, counter.connection.port, counter.connection.rods) == ("left", PORT, 13)
    assert counter.matches("counting", "beads")
    assert not counter.matches("public", "beads")


@pytest.mark.parametrize(
    ("more", "mistake"),
    [
        ("fram = 'left'", r"\[source\.counter\]\.fram: unknown key.* frame\. Did you mean frame\?"),
        ("database = 'a'", r"\[source\.counter\]\.database: unknown key"),
        (f"{CONNECTION}rod = 5", r"\.connection\]\.rod: unknown key.*Did you mean rods\?"),
        (f"{CONNECTION}sslmode = 'prefer'", r"\.connection\]\.sslmode: unknown key"),
        (f"{CONNECTION}rods = 1", r"\.connection\]\.rods: too few rods.*2 or more"),
        (f"{CONNECTION}user = 'abbot'", r"\.connection\]\.user: the administrator must not also replicate"),
    ],
)
def test_a_mistake_in_a_second_engine_s_section_is_reported_in_its_own_terms(more: str, mistake: str) -> None:
    with pytest.raises(LakeFileError, match=mistake):
        lake_with(more)


def test_an_unknown_engine_is_reported_with_the_known_ones() -> None:
    with pytest.raises(LakeFileError, match=r'"dynamodb" or "abacus"\. Did you mean abacus\?'):
        parse_lake(POSTGRES + ABACUS.replace("abacus", "abacuss"))


def test_a_second_engine_s_database_on_aws_has_its_own_entries() -> None:
    secret = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:counter-AbCdEf"
    aws = f'[aws]\nregion = "eu-west-1"\n[aws.source.counter]\nhost = "h"\nsecret = "{secret}"\n'
    lake = lake_with(f"{aws}rods = 5")
    assert lake.aws is not None
    assert lake.aws.source["counter"].model_dump()["rods"] == 5
    assert lake.aws.source["counter"].port == PORT
    with pytest.raises(LakeFileError, match=r"\[aws\.source\.counter\]\.sslmode: unknown key.* rods"):
        lake_with(f"{aws}sslmode = 'prefer'")


# Topics.


@pytest.mark.parametrize(("frame", "below"), [("", ""), ('frame = "left"\n', "left.")])
def test_a_second_engine_s_topics_give_its_tables(frame: str, below: str) -> None:
    lake = lake_with(frame=frame)
    topic = lake.source_names(lake.source("counter")).topic("counting", "beads")
    assert topic == f"shop.counter.{below}counting.beads"
    assert lake.table_of_topic(topic) == BEADS
    assert lake.table_of_topic("shop.web.public.orders") == TableName("web", "public", "orders")
    for name in (topic, "shop.web.public.orders"):
        assert re.fullmatch(lake.table_topics_regex, name)
    for other in (f"{topic}.old", "shop.counter.beads", "shop.web.left.public.orders"):
        assert lake.table_of_topic(other) is None
        assert not re.fullmatch(lake.table_topics_regex, other)


def test_topics_of_another_connector_have_the_second_engine_s_form_too() -> None:
    lake = lake_with('frame = "left"\n[source.counter.events]\ntopic_prefix = "old.server"\n')
    assert lake.table_of_topic("old.server.left.counting.beads") == BEADS
    assert lake.table_of_topic("old.server.counting.beads") is None
    assert lake.table_of_topic("old.server.right.counting.beads") is None


# The connector.


def test_a_second_engine_s_connector_is_rendered_with_the_others(tmp_path: Path) -> None:
    lake = lake_with()
    deployment = servers_of(lake, tmp_path).deployment
    configs = {
        source.name: engine_of(source).render(lake, source, deployment).config for source in lake.sources
    }
    assert configs["counter"] == {
        "connector.class": "org.example.AbacusConnector",
        "abacus.address": "counter-shop@abacus.example.org:7777",
        "abacus.password": deployment.databases["counter"].password.placeholder,
        "abacus.beam": "beam-of-shop-counter",
        "abacus.frames": "counting",
        "abacus.rods": "13",
        "topic.prefix": "shop.counter",
    }
    assert configs["web"]["connector.class"].endswith("PostgresConnector")
    sink = iceberg_sink.render(lake, deployment).config
    assert re.fullmatch(sink["topics.regex"], "shop.counter.counting.beads")
    assert engine_of_connector(configs["counter"]) is engine_of(lake.source("counter"))
    assert engine_of_connector(sink) is None


def test_a_second_engine_s_plugin_gets_the_config_provider_for_secrets() -> None:
    assert source_plugins() >= {"debezium-connector-postgres", "debezium-connector-abacus"}


def test_a_failure_that_a_second_engine_knows_has_its_remedy() -> None:
    trace = "org.example.Failed: a rod broke in frame 3"
    status = ConnectorStatus("c", "RUNNING", (TaskStatus(0, "FAILED", trace),))
    assert status.remedies == (Advice("Replace the rod."),)

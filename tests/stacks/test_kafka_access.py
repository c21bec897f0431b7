"""Who may do what in Kafka: by exact names, except for prefixes that belong to the lake alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from stacks.kafka.access import (
    Access,
    debezium_access,
    iceberg_sink_access,
    known_topics,
    other_sink_access,
    spark_access,
    table_topics,
)
from stacks.kafka.cluster import KafkaCluster
from tributary.contract.lake import parse_lake
from tributary.contract.naming import LakeNames

LAKE = parse_lake(
    """
    [lake]
    name = "shop"

    [source.web_shop]
    engine = "postgres"
    database = "shop"
    tables = ["public.*", "sales.order_a", "sales.or?er_*", "!public.audit"]

    [source.crm]
    engine = "postgres"
    database = "crm"
    tables = ["public.customer"]

    [source.all]
    engine = "postgres"
    database = "all"
    tables = ["*.*"]
    """
)
WITH_OUTBOX = parse_lake(
    """
    [lake]
    name = "shop"

    [source.web]
    engine = "postgres"
    database = "shop"
    tables = ["public.orders", "public.events"]

    [source.web.outbox]
    table = "public.events"
    lake_schema = "told_events"
    """
)
KAFKA = cast(
    KafkaCluster,
    SimpleNamespace(
        arn="cluster",
        arn_of=lambda kind, name: f"{kind}/{name}",
        finding_of=lambda kind, name: f"{kind}/{name}",
    ),
)
WEB, CRM, ALL = (LAKE.source(name) for name in ("web_shop", "crm", "all"))
EVERY_ACCESS = {
    "web_shop": debezium_access(KAFKA, LAKE, WEB),
    "crm": debezium_access(KAFKA, LAKE, CRM),
    "all": debezium_access(KAFKA, LAKE, ALL),
    "sink": iceberg_sink_access(KAFKA, LAKE),
    "other sink": other_sink_access(KAFKA, LAKE),
    "spark": spark_access(KAFKA, LAKE),
}
each_access = pytest.mark.parametrize("access", EVERY_ACCESS.values(), ids=EVERY_ACCESS.keys())
INTERNAL = "__amazon_msk_connect_*"


def test_a_pattern_stands_for_the_prefix_of_the_topics_that_it_can_match() -> None:
    assert table_topics(LAKE, WEB) == [
        "shop.web_u005fshop.public.*",
        "shop.web_u005fshop.sales.or*",
        "shop.web_u005fshop.sales.order_u005fa",
    ]
    assert table_topics(LAKE, CRM) == ["shop.crm.public.customer"]
    assert table_topics(LAKE, ALL) == ["shop.all.*"]


def test_every_topic_that_a_pattern_matches_begins_with_its_prefix() -> None:
    names = LAKE.source_names(WEB)
    for schema, table in (("public", "Ünï x"), ("sales", "or_er_1"), ("sales", "order_a")):
        assert WEB.matches(schema, table)
        topic = names.topic(schema, table)
        assert any(_matches(right, topic) for right in table_topics(LAKE, WEB))


def test_only_tables_named_in_full_have_known_topics() -> None:
    assert list(known_topics(LAKE, WEB)) == ["shop.web_u005fshop.sales.order_u005fa"]
    assert list(known_topics(LAKE, ALL)) == []


def test_debezium_reads_no_table_topic() -> None:
    assert _with(EVERY_ACCESS["web_shop"], "ReadData") == {
        f"topic/{INTERNAL}",
        "topic/__tributary.shop.web_shop.connect-offsets",
    }


def test_debezium_makes_topics_for_patterns_only() -> None:
    new = _with(EVERY_ACCESS["web_shop"], "CreateTopic") - _with(EVERY_ACCESS["web_shop"], "ReadData")
    assert new == {"topic/shop.web_u005fshop.public.*", "topic/shop.web_u005fshop.sales.or*"}
    assert not any("customer" in right for right in _with(EVERY_ACCESS["crm"], "CreateTopic"))


def test_no_source_may_write_what_is_another_sources() -> None:
    shared = {f"topic/{INTERNAL}"}
    rights = {name: _with(EVERY_ACCESS[name], "WriteData") - shared for name in ("web_shop", "crm", "all")}
    for name, own in rights.items():
        for other, others in rights.items():
            assert name == other or not any(
                _overlap(right, foreign) for right in own for foreign in others
            ), (name, other)


@pytest.mark.parametrize("name", ["sink", "other sink", "spark"])
def test_readers_write_to_no_table_topic(name: str) -> None:
    written = _with(EVERY_ACCESS[name], "WriteData") | _with(EVERY_ACCESS[name], "CreateTopic")
    assert written <= {f"topic/{INTERNAL}", "topic/__tributary.shop.bronze-control"}


@pytest.mark.parametrize("name", ["sink", "other sink", "spark"])
def test_readers_read_the_tables_of_all_sources(name: str) -> None:
    tables = {f"topic/{topic}" for source in LAKE.sources for topic in table_topics(LAKE, source)}
    assert tables <= _with(EVERY_ACCESS[name], "ReadData")


def test_only_the_iceberg_sink_has_transactions() -> None:
    having = [name for name, access in EVERY_ACCESS.items() if _with(access, "AlterTransactionalId")]
    assert having == ["sink"]
    assert _with(EVERY_ACCESS["sink"], "AlterTransactionalId") == {"transactional-id/tributary.shop.bronze-*"}


def test_the_iceberg_sink_has_the_groups_of_its_tasks_and_of_their_coordinator() -> None:
    connector = LAKE.names.bronze_connector
    assert _with(EVERY_ACCESS["sink"], "AlterGroup") == {
        f"group/{INTERNAL}",
        f"group/connect-{connector}",
        f"group/connect-{connector}-coord",
        "group/tributary.shop.bronze-control-*",
    }


def test_many_tables_named_in_full_do_not_overfill_a_policy() -> None:
    tables = ", ".join(f'"public.table{number}"' for number in range(100))
    lake = parse_lake(
        f"""
        [lake]
        name = "shop"
        [source.web]
        engine = "postgres"
        database = "shop"
        tables = [{tables}]
        """
    )
    for access in (
        debezium_access(KAFKA, lake, lake.source("web")),
        iceberg_sink_access(KAFKA, lake),
        spark_access(KAFKA, lake),
    ):
        assert "topic/shop.web.*" in _all(access)
        assert len(_all(access)) < 12
        assert "topic/shop.web.*" not in _with(access, "CreateTopic")
    assert len(list(known_topics(lake, lake.source("web")))) == 100


@each_access
def test_every_prefix_is_the_lakes_or_mskconnects_own(access: Access) -> None:
    names = LakeNames("shop")
    own = ("shop.", f"tributary.{names.lake}.", f"connect-tributary-{names.lake}-", "__amazon_msk_connect_")
    for right in _all(access):
        if right.endswith("*"):
            assert right.split("/", 1)[1].startswith(own)


@each_access
def test_every_prefix_is_acknowledged_with_a_reason_and_nothing_else_is(access: Access) -> None:
    prefixes = {f"AwsSolutions-IAM5[Resource::{right}]" for right in _all(access) if right.endswith("*")}
    assert set(access.acknowledged) == prefixes
    assert all(access.acknowledged.values())


@each_access
def test_no_action_is_a_wildcard(access: Access) -> None:
    actions = {action for statement in access for action in statement.actions}
    assert all(re.fullmatch(r"kafka-cluster:[A-Za-z]+", action) for action in actions)


def _rights(access: Access) -> Mapping[str, set[str]]:
    """The resources, by the action."""
    rights: dict[str, set[str]] = {}
    for statement in access:
        for action in statement.actions:
            rights.setdefault(action.removeprefix("kafka-cluster:"), set()).update(statement.resources)
    return rights


def _with(access: Access, action: str) -> set[str]:
    return set(_rights(access).get(action, set()))


def _all(access: Access) -> set[str]:
    return set().union(*_rights(access).values())


def _matches(right: str, name: str) -> bool:
    return name.startswith(right[:-1]) if right.endswith("*") else name == right


def _overlap(one: str, other: str) -> bool:
    return _matches(one, other.rstrip("*")) or _matches(other, one.rstrip("*"))


def test_routed_events_have_topics_of_any_type() -> None:
    source = WITH_OUTBOX.source("web")
    routed = "shop.web.told_u005fevents.*"
    assert routed in table_topics(WITH_OUTBOX, source)
    access = str([statement.to_json() for statement in debezium_access(KAFKA, WITH_OUTBOX, source)])
    assert f"topic/{routed}" in access
    assert "CreateTopic" in access
    assert f"topic/{routed}" in str([one.to_json() for one in spark_access(KAFKA, WITH_OUTBOX).statements])


def test_the_app_reads_and_writes_the_topics_of_derived_tables_by_their_names() -> None:
    text = """
    [lake]
    name = "shop"
    [source.web_shop]
    engine = "postgres"
    database = "shop"
    tables = ["public.*"]
    [topic.purchases]
    topic = "sales.purchases"
    columns = { id = "bigint" }
    [derived.copied]
    key = ["id"]
    sql = "SELECT id FROM purchases"
    topic = "sales.copied"
    """
    rights = [
        (set(statement.actions), list(statement.resources))
        for statement in spark_access(KAFKA, parse_lake(text)).statements
    ]
    read = {"kafka-cluster:DescribeTopic", "kafka-cluster:ReadData"}
    written = {f"kafka-cluster:{action}" for action in ("CreateTopic", "DescribeTopic", "WriteData")}
    assert (read, ["topic/sales.purchases"]) in rights
    assert (written, ["topic/sales.copied"]) in rights
    assert ({"kafka-cluster:WriteDataIdempotently"}, ["cluster"]) in rights

"""Physical names keep every server's limits, are never shared by two lakes, and can be read back."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.contract.lake_files import IDENTIFIERS, LAKE_NAMES, SOURCE_NAMES
from tributary.contract.naming import (
    MAX_LAKE_NAME,
    MAX_SOURCE_NAME,
    LakeNames,
    NameNotAllowed,
    SourceNames,
    lake_name_problem,
    source_name_problem,
)
from tributary.contract.patterns import is_traceable
from tributary.contract.table_name import TableName
from tributary.contract.topic_form import SCHEMA_AND_TABLE, TopicForm

ALPHABET = st.text(st.sampled_from("abz09-_.A"), min_size=1, max_size=8)
TABLES = st.tuples(IDENTIFIERS, IDENTIFIERS)
FORMS = st.sampled_from([SCHEMA_AND_TABLE, TopicForm(("sales db",))])
"""Topic forms with two names below the prefix, like PostgreSQL and MySQL, and with three, like SQL Server."""


def names_of_lake(lake: LakeNames) -> set[str]:
    return {
        *lake.buckets,
        lake.bronze_namespace,
        lake.glue_database,
        lake.dbt_database,
        lake.connect_group,
        lake.own_topics,
        lake.connect_offsets_topic,
        lake.connect_configs_topic,
        lake.connect_status_topic,
        lake.bronze_connector,
        lake.bronze_control_topic,
        lake.bronze_control_group_prefix,
        lake.bronze_transactional_prefix,
        lake.spark_group_prefix,
    }


def names_of_source(source: SourceNames) -> set[str]:
    return {
        source.topic_prefix,
        source.heartbeat_topic,
        source.notification_topic,
        source.history_topic,
        source.connect_offsets_topic,
        source.connector,
    }


@given(LAKE_NAMES, LAKE_NAMES, SOURCE_NAMES, SOURCE_NAMES)
@example("a1", "a1-b", "b", "c")
@example("a1", "a1-bronze", "bronze", "bronze")
@example("a1", "a1-b", "b_c", "c")
def test_no_two_lakes_share_a_name(one: str, other: str, a: str, b: str) -> None:
    assume(one != other)
    first, second = LakeNames(one), LakeNames(other)
    assert not names_of_lake(first) & names_of_lake(second)
    ours = names_of_lake(first) | names_of_source(first.source(a, SCHEMA_AND_TABLE))
    theirs = names_of_lake(second) | names_of_source(second.source(b, SCHEMA_AND_TABLE))
    assert not ours & theirs


@given(LAKE_NAMES, SOURCE_NAMES, SOURCE_NAMES)
def test_no_two_sources_of_a_lake_share_a_name(lake: str, one: str, other: str) -> None:
    assume(one != other)
    names = LakeNames(lake)
    ours, theirs = (names_of_source(names.source(name, SCHEMA_AND_TABLE)) for name in (one, other))
    assert not ours & theirs
    assert not ours & names_of_lake(names)


@given(LAKE_NAMES, LAKE_NAMES)
@example("a1", "a1-spark")
def test_no_prefix_of_one_lake_begins_a_name_of_another(one: str, other: str) -> None:
    assume(one != other)
    ours, theirs = LakeNames(one), LakeNames(other)
    for prefix in (
        ours.spark_group_prefix,
        ours.bronze_control_group_prefix,
        ours.bronze_transactional_prefix,
    ):
        assert not any(name.startswith(prefix) for name in names_of_lake(theirs))


@given(
    st.from_regex(rf"[a-z][a-z0-9-]{{1,{MAX_LAKE_NAME - 1}}}", fullmatch=True),
    st.from_regex(rf"[a-z][a-z0-9_]{{0,{MAX_SOURCE_NAME - 1}}}", fullmatch=True),
)
def test_every_name_is_within_its_server_s_limits(lake: str, source: str) -> None:
    assume(lake_name_problem(lake) is None and source_name_problem(source) is None)
    names = LakeNames(lake)
    for bucket in names.buckets:
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", bucket)
        # This leaves room for "-<account>-<region>".
        assert len(bucket) <= 63 - len("-123456789012-ap-southeast-1")
    for database in (names.glue_database, names.bronze_namespace):
        assert re.fullmatch(r"[a-z0-9_]{1,255}", database)
    heartbeat_topic = names.source(source, SCHEMA_AND_TABLE).heartbeat_topic
    topics = [names.connect_offsets_topic, names.bronze_control_topic, heartbeat_topic]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic) for topic in topics)


@given(ALPHABET)
def test_a_name_is_allowed_or_its_problem_reported(name: str) -> None:
    is_kebab = re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) is not None and len(name) > 1
    is_snake = re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) is not None
    assert (lake_name_problem(name) is None) == is_kebab
    assert (source_name_problem(name) is None) == is_snake


@given(LAKE_NAMES, SOURCE_NAMES, FORMS, TABLES)
@example("tickit", "box_office", SCHEMA_AND_TABLE, ("public", "order_items"))
@example("tickit", "shop", SCHEMA_AND_TABLE, ("public", "ł"))
@example("tickit", "shop", TopicForm(("Ünï",)), ("dbo", "ł"))
def test_a_table_is_read_back_from_its_topic(
    lake: str, source: str, form: TopicForm, table: tuple[str, str]
) -> None:
    names = LakeNames(lake).source(source, form)
    assume(names.topic_problem(*table) is None)
    topic = names.topic(*table)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic)
    assert len(topic.split(".")) == 4 + len(form.leading)
    assert names.lake.table_of_topic(topic, [names]) == TableName(source, *table)


@given(LAKE_NAMES, SOURCE_NAMES, TABLES)
def test_a_topic_of_another_form_belongs_to_no_table(lake: str, source: str, table: tuple[str, str]) -> None:
    two = LakeNames(lake).source(source, SCHEMA_AND_TABLE)
    three, other = (LakeNames(lake).source(source, TopicForm((name,))) for name in ("sales", "stock"))
    assume(three.topic_problem(*table) is None)
    for names, topic in (
        (two, three.topic(*table)),
        (three, two.topic(*table)),
        (three, other.topic(*table)),
    ):
        assert names.lake.table_of_topic(topic, [names]) is None


@given(LAKE_NAMES, SOURCE_NAMES, TABLES)
def test_the_topics_of_a_source_that_left_the_lake_file_are_still_read(
    lake: str, source: str, table: tuple[str, str]
) -> None:
    names = LakeNames(lake).source(source, SCHEMA_AND_TABLE)
    assume(names.topic_problem(*table) is None)
    assert names.lake.table_of_topic(names.topic(*table), []) == TableName(source, *table)


@given(LAKE_NAMES, SOURCE_NAMES, FORMS, TABLES, TABLES)
@example("tickit", "shop", SCHEMA_AND_TABLE, ("public", "order items"), ("public", "order_items"))
@example("tickit", "shop", SCHEMA_AND_TABLE, ("a_b", "c"), ("a", "b_c"))
def test_no_two_tables_share_a_topic(
    lake: str, source: str, form: TopicForm, one: tuple[str, str], other: tuple[str, str]
) -> None:
    names = LakeNames(lake).source(source, form)
    assume(one != other and names.topic_problem(*one) is None and names.topic_problem(*other) is None)
    assert names.topic(*one) != names.topic(*other)
    # Kafka refuses a topic that differs from another only in . and _, because metrics would share a name.
    assert names.topic(*one).replace(".", "_") != names.topic(*other).replace(".", "_")


@given(LAKE_NAMES, st.text(st.sampled_from("abu._-0145fA"), max_size=30), FORMS)
@example("tickit", "tickit.shop.public.order_items", SCHEMA_AND_TABLE)
@example("tickit", "tickit.shop.public.a_u0142", SCHEMA_AND_TABLE)
@example("tickit", "tickit.Shop.public.a", SCHEMA_AND_TABLE)
def test_a_topic_that_is_not_a_table_s_gives_none(lake: str, topic: str, form: TopicForm) -> None:
    shop = LakeNames(lake).source("shop", form)
    table = LakeNames(lake).table_of_topic(topic, [shop])
    if table is not None:
        form = form if table.source == "shop" else SCHEMA_AND_TABLE
        assert LakeNames(lake).source(table.source, form).topic(table.schema, table.table) == topic


@given(LAKE_NAMES, LAKE_NAMES, SOURCE_NAMES, SOURCE_NAMES, FORMS, FORMS, TABLES)
def test_the_sinks_regular_expression_takes_the_topics_of_its_lakes_tables_and_no_others(
    lake: str,
    other_lake: str,
    source: str,
    other_source: str,
    form: TopicForm,
    other_form: TopicForm,
    table: tuple[str, str],
) -> None:
    ours, other = LakeNames(lake).source(source, form), LakeNames(lake).source(other_source, other_form)
    assume(ours.topic_problem(*table) is None)
    regex = ours.lake.table_topics_regex([ours])
    assert re.fullmatch(regex, ours.topic(*table))
    others = [ours.heartbeat_topic, ours.lake.bronze_control_topic, ours.lake.connect_status_topic]
    if other_source != source:
        assert re.fullmatch(ours.lake.table_topics_regex([other, ours]), ours.topic(*table))
        assume(other.topic_problem(*table) is None)
        assert re.fullmatch(ours.lake.table_topics_regex([ours, other]), other.topic(*table))
        others.append(other.topic(*table))
    if other_form != form:
        others.append(LakeNames(lake).source(source, other_form).topic(*table))
    if other_lake != lake:
        others.append(LakeNames(other_lake).source(source, form).topic(*table))
    assert not [topic for topic in others if re.fullmatch(regex, topic)]


def test_the_regular_expression_of_a_lake_with_one_topic_form_is_short() -> None:
    names = LakeNames("tickit")
    shop, crm = (names.source(name, SCHEMA_AND_TABLE) for name in ("shop", "crm"))
    erp = names.source("erp", TopicForm(("sales",)))
    assert names.table_topics_regex([shop, crm]) == r"tickit\.(shop|crm)\.[^.]+\.[^.]+"
    assert names.table_topics_regex([shop, erp, crm]) == (
        r"tickit\.((shop|crm)\.[^.]+\.[^.]+|(erp)\.sales\.[^.]+\.[^.]+)"
    )


@given(SOURCE_NAMES, IDENTIFIERS, IDENTIFIERS)
@example("shop", "public", "_prisma_migrations")
def test_a_table_is_read_back_from_its_path(source: str, schema: str, table: str) -> None:
    names, name = LakeNames("tickit"), TableName(source, schema, table)
    path = names.table_path(name)
    assert re.fullmatch(r"([A-Za-z0-9~-][A-Za-z0-9_~-]*/){2}[A-Za-z0-9~-][A-Za-z0-9_~-]*", path)
    assert names.table_of_path(path) == name
    assert names.table_of_path(f"/{path}/") == name


@given(SOURCE_NAMES, SOURCE_NAMES, TABLES, TABLES)
@example("shop", "shop", ("public", "Orders"), ("public", "orders"))
@example("shop", "shop", ("public", "a_b"), ("public_a", "b"))
@example("shop", "shop_a", ("a", "b"), ("b", "b"))
@example("shop", "shop", ("public", "orders"), ("public", "orders_ro"))
@example("shop", "shop", ("public", "中" * 63), ("public", "国" * 63))
@example("shop", "shop", ("a" * 128, "b" * 128), ("a" * 128, "b" * 127 + "c"))
def test_no_two_tables_or_views_share_a_name_in_glue(
    source: str, other_source: str, one: tuple[str, str], other: tuple[str, str]
) -> None:
    names = LakeNames("tickit")
    tables = (TableName(source, *one), TableName(other_source, *other))
    assume(tables[0] != tables[1])
    ours, theirs = ({names.glue_table(table) + view for view in ("", "_ro", "_rt")} for table in tables)
    assert not ours & theirs
    assert all(re.fullmatch(r"[a-z0-9_]{1,255}", name) for name in ours | theirs)


@pytest.mark.parametrize("path", ["", "shop/public", "shop/public/a/b", "shop/public/_a", "shop/public/a b"])
def test_a_path_that_is_not_a_table_s_gives_none(path: str) -> None:
    assert LakeNames("tickit").table_of_path(path) is None


@pytest.mark.parametrize(
    "table", [("a.b", "c"), ("public", "ła"), ("public", '"a'), ("public", " "), ("public", "中" * 50)]
)
def test_a_table_without_a_topic_of_its_own_is_refused_by_name(table: tuple[str, str]) -> None:
    with pytest.raises(NameNotAllowed, match="Leave the table out") as caught:
        LakeNames("tickit").source("shop", SCHEMA_AND_TABLE).topic(*table)
    assert caught.value.where == str(TableName("shop", *table))


@given(IDENTIFIERS)
def test_a_name_is_traceable_unless_it_is_one_of_four_rare_kinds(name: str) -> None:
    has_dot = "." in name
    is_blank = not name.strip("".join(map(chr, range(0x21))))
    three_digits = [
        (ord(a) < 0x10 or 0x100 <= ord(a) <= 0xFFF) and b in "0123456789abcdef" for a, b in pairwise(name)
    ]
    seems_quoted = name[0] == '"' or name[-1] == '"'
    assert is_traceable(name) != (has_dot or is_blank or any(three_digits) or seems_quoted)


def test_the_names_of_the_demo_are_as_documented() -> None:
    names = LakeNames("tickit").source("shop", SCHEMA_AND_TABLE)
    assert names.topic("public", "sales") == "tickit.shop.public.sales"
    assert names.lake.buckets == ("tickit-bronze", "tickit-silver", "tickit-quarantine")
    assert names.lake.glue_database == "tickit_silver"
    assert names.lake.glue_table(TableName("shop", "public", "order_items")) == "shop__public__order_items"
    assert names.lake.spark_bronze_table == "bronze.tickit_bronze.events"


def test_no_property_of_a_lakes_names_is_left_out_of_these_tests() -> None:
    checked = names_of_lake(LakeNames("a1"))
    everywhere_alike = {"bronze", "a1", "a1_bronze.events", "bronze.a1_bronze.events"}
    properties = [name for name, value in vars(LakeNames).items() if isinstance(value, property)]
    values = {getattr(LakeNames("a1"), name) for name in properties if name != "buckets"}
    assert values <= checked | everywhere_alike
    assert len(checked) == len(set(checked))
    assert all(one != other for one, other in combinations(sorted(checked), 2))

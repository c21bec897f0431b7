"""An outbox in the lake file: its table is replaced by tables of events, and what cannot work is refused."""

from __future__ import annotations

import pytest

from tributary.contract.lake import Lake, LakeFileError, parse_lake
from tributary.contract.table_name import TableName

EVENTS = TableName("web", "outbox", "order_item")


def lake_of(*outbox: str, tables: str = '["public.*"]', more: str = "", engine: str = "postgres") -> Lake:
    entries = "\n".join(outbox or ('table = "public.events"',))
    return parse_lake(
        f'[lake]\nname = "shop"\n[source.web]\nengine = "{engine}"\ndatabase = "app"\n'
        f"tables = {tables}\n{more}\n[source.web.outbox]\n{entries}\n"
    )


def test_the_outbox_itself_is_no_table_of_the_lake_but_its_events_are() -> None:
    source = lake_of().source("web")
    assert not source.matches("public", "events")
    assert source.patterns.matches("public", "events")
    assert source.matches("public", "orders")
    assert source.routes_to("outbox")
    assert not source.routes_to("public")


def test_a_type_stands_in_its_topic_as_it_is() -> None:
    lake = lake_of()
    topic = lake.source_names(lake.source("web")).topic("outbox", "order_item")
    assert topic == "shop.web.outbox.order_item"
    assert lake.table_of_topic(topic) == EVENTS
    assert lake.table_of_topic("shop.web.outbox.order_u005fitem") == TableName(
        "web", "outbox", "order_u005fitem"
    )
    assert lake.table_of_topic("shop.web.outbox.order.item") is None
    # Debezium names the other tables' topics.
    assert lake.table_of_topic("shop.web.public.order_u005fitem") == TableName("web", "public", "order_item")
    assert lake.table_of_topic("shop.web.public.order_item") is None


def test_the_events_have_the_key_of_the_outbox_and_the_other_settings_of_the_lake() -> None:
    lake = lake_of('table = "public.events"', 'id = "event_id"', "[defaults]", "buckets = 7")
    assert (lake.policy(EVENTS).key, lake.policy(EVENTS).buckets) == (("event_id",), 7)
    assert lake.policy(TableName("web", "public", "orders")).key is None
    own = lake_of('table = "public.events"', '[table."web.outbox.order_item"]', 'partition_by = ["type"]')
    assert (own.policy(EVENTS).key, own.policy(EVENTS).partition_by) == (("id",), ("type",))


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["columns = []"], r"\[source\.web\.outbox\]\.table: .*nothing"),
        (['table = "events"'], r"\.table: wrong value: found \"events\", expected schema\.table"),
        (['table = "sales.events"'], r"\.table: an outbox that the source does not take: .*public\.\*"),
        (['table = "public.events"', 'lake_schema = "public"'], r"\.lake_schema: .*takes no table"),
        (['table = "public.events"', 'lake_schema = "tributary"'], r"\.lake_schema"),
        (['table = "public.events"', 'columns = ["id"]'], r"two columns .*found id"),
        (['table = "public.events"', 'key = "payload"'], r"two columns .*found payload"),
        (['table = "public.events"', 'columns = ["a:b"]'], r"columns.*letters, digits and underscores"),
        (['table = "public.events"', 'tpye = "kind"'], r"unknown key: found tpye.*Did you mean type"),
        (
            ['table = "public.events"', '[table."web.outbox.order"]', 'key = ["x"]'],
            r"order\"\]\.key: an entry that routed events do not have",
        ),
        (['table = "public.events"', '[table."web.public.events"]', 'key = ["x"]'], r"does not take"),
    ],
)
def test_a_mistake_in_an_outbox_is_told_with_its_entry(lines: list[str], told: str) -> None:
    with pytest.raises(LakeFileError, match=told):
        lake_of(*lines)


def test_an_outbox_is_json_and_of_postgresql() -> None:
    avro = 'format = "avro"\n[registry]\nkind = "apicurio"'
    with pytest.raises(LakeFileError, match=r"\[source\.web\.outbox\]: an outbox whose events are Avro"):
        lake_of(more=avro)
    with pytest.raises(LakeFileError, match="unknown key: found outbox"):
        lake_of(engine="sqlserver", tables='["dbo.*"]')

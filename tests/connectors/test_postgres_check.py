"""The preflight check refuses what Debezium cannot read without loss, and says what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connectors.engines.postgres.not_ready import PostgresNotReady
from connectors.engines.postgres.preflight import ServerFacts, judge_server
from connectors.engines.postgres.table_check import PostgresFindings, judge_existing, judge_tables
from connectors.engines.postgres.table_facts import TableFacts, UniqueKey
from tests.postgres_source import postgres_source
from tributary.contract.lake import Lake, parse_lake
from tributary.contract.table_name import TableName

ORDERS = TableFacts(
    "public",
    "orders",
    columns=("id", "number", "region", "note"),
    not_null=frozenset({"id", "number"}),
    unique_keys=(UniqueKey(frozenset({"id"}), is_primary=True), UniqueKey(frozenset({"number"}))),
)
DEFERRABLE = (
    UniqueKey(frozenset({"id"}), is_primary=True, is_deferrable=True),
    UniqueKey(frozenset({"number"})),
    UniqueKey(frozenset({"region"}), is_deferrable=True),
)
SERVER = ServerFacts(
    version=16,
    release="16.4",
    encoding="UTF8",
    wal_level="logical",
    is_standby=False,
    database="shop",
    slots=10,
    slots_in_use=0,
    senders=10,
    senders_in_use=0,
)


def lake(tables: str = '["public.*"]', entry: str = "", *, is_local: bool = False) -> Lake:
    connection = '[source.shop.connection]\nhost = "h"\npassword_env = "P"\n'
    return parse_lake(
        f'[lake]\nname = "shop"\n[source.shop]\nengine = "postgres"\ndatabase = "shop"\ntables = {tables}\n'
        f"{'' if is_local else connection}{entry}"
    )


def judge(lake: Lake, *tables: TableFacts) -> PostgresFindings:
    return judge_tables(lake, postgres_source(lake), tables)


def test_a_table_with_a_primary_key_is_accepted_without_a_warning() -> None:
    assert judge(lake(), ORDERS) == PostgresFindings((TableName("shop", "public", "orders"),))


def test_later_tables_are_judged_although_a_pattern_has_lost_its_table() -> None:
    lost = lake('["public.*", "sales.dropped"]')
    keyless = replace(ORDERS, unique_keys=())
    with pytest.raises(PostgresNotReady, match=r"sales\.dropped"):
        judge(lost, keyless)
    (left_out,) = judge_existing(lost, postgres_source(lost), [keyless]).left_out
    assert left_out.table.table == "orders"


def test_the_tables_that_are_taken_are_listed_in_order() -> None:
    found = judge(lake('["public.*", "!public.audit"]'), ORDERS, replace(ORDERS, table="audit"))
    assert found.tables == (TableName("shop", "public", "orders"),)


FLAWS = {
    "no primary key": (
        replace(ORDERS, unique_keys=()),
        "",
        ["shop.public.orders", "no replica identity", "REPLICA IDENTITY FULL", '"!public.orders"'],
    ),
    "no key in a fully replicated table": (
        replace(ORDERS, unique_keys=(), replica_identity="f"),
        "",
        ["nothing identifies its rows", "key = [...]"],
    ),
    "a deferrable primary key": (
        replace(ORDERS, unique_keys=DEFERRABLE),
        "",
        [
            "shop.public.orders",
            "a DEFERRABLE primary key",
            "ALTER TABLE public.orders DROP CONSTRAINT …, ADD PRIMARY KEY (id)",
            '"!public.orders"',
        ],
    ),
    "a deferrable primary key in a fully replicated table": (
        replace(ORDERS, unique_keys=DEFERRABLE, replica_identity="f"),
        "",
        [
            "takes a key before the key's former row",
            "ADD PRIMARY KEY (id)",
            "key = [...]",
            '"!public.orders"',
        ],
    ),
    "a key with only a deferrable unique index": (
        replace(ORDERS, unique_keys=DEFERRABLE, replica_identity="f"),
        'key = ["region"]',
        ["does not identify a row", "found region", "not DEFERRABLE"],
    ),
    "replica identity nothing": (replace(ORDERS, replica_identity="n"), "", ["no replica identity"]),
    "unlogged": (replace(ORDERS, is_permanent=False), "", ["unlogged", "SET LOGGED"]),
    "a partition of a table that is not taken": (
        replace(ORDERS, root=("hidden", "orders")),
        "",
        ["a partition", '"!public.orders"'],
    ),
    "tables that inherit from it": (
        replace(ORDERS, has_heirs=True),
        "",
        ["rows of other tables", "Take only the children", '"!public.orders"'],
    ),
    "rows that a policy hides": (
        replace(ORDERS, hides_rows=True),
        "",
        [
            "may not see every row",
            'CREATE POLICY tributary ON "public"."orders" FOR SELECT TO "tributary_shop__shop" USING (true)',
            "BYPASSRLS",
            '"!public.orders"',
        ],
    ),
    "a key of which two values become one": (
        replace(ORDERS, inexact=frozenset({"id"})),
        "",
        ["one row for two", "the key column id", "another unique index", '"!public.orders"'],
    ),
    "a key in years before Christ": (
        replace(ORDERS, ancient=("id",)),
        "",
        ["one row for two", "before Christ", "another unique index"],
    ),
    "a replica identity without the primary key": (
        replace(
            ORDERS,
            replica_identity="i",
            unique_keys=(
                UniqueKey(frozenset({"id"}), is_primary=True),
                UniqueKey(frozenset({"number"}), is_replica_identity=True),
            ),
        ),
        "",
        ["does not report this key with a delete", "replica identity of number", "one that holds id"],
    ),
    "too long a name": (replace(ORDERS, table="中" * 60), "", ["too long", "249"]),
    "an array of arrays": (
        replace(ORDERS, nested_arrays=("note",)),
        "",
        ["found note, an array of arrays", '"!public.orders"'],
    ),
    "an array of bits": (
        replace(ORDERS, unreadable=("note",)),
        "",
        ["found note, an array of bits", '"!public.orders"'],
    ),
    "columns that differ in case only": (
        replace(ORDERS, columns=("id", "note", "Note")),
        "",
        ["the column Note", '"!public.orders"'],
    ),
    "a column whose name seems quoted": (
        replace(ORDERS, columns=("id", "'note'")),
        "",
        ["the column 'note'", '"!public.orders"'],
    ),
    "a column whose name has a space": (
        replace(ORDERS, columns=("id", "First Name")),
        "",
        ["found 'First Name'", "letters A to Z, digits and underscores", '"!public.orders"'],
    ),
    "a key column that does not exist": (
        ORDERS,
        'key = ["nr"]',
        ['[table."shop.public.orders"].key', "found nr", "id, number, region, note"],
    ),
    "a key that is not unique": (ORDERS, 'key = ["region"]', ["does not identify a row", "found region"]),
    "a key that may be null": (
        replace(ORDERS, not_null=frozenset({"id"})),
        'key = ["number"]',
        ["may be null", "found number"],
    ),
    "a key that deletes do not report": (
        ORDERS,
        'key = ["number"]',
        ["does not report this key with a delete", "replica identity of id", "one that holds number"],
    ),
    "a partition column that does not exist": (
        ORDERS,
        'partition_by = ["country"]',
        ['[table."shop.public.orders"].partition_by', "found country"],
    ),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_table_that_the_lake_could_not_keep_exact_is_left_out_and_the_others_are_taken(flaw: str) -> None:
    table, entry, expected = FLAWS[flaw]
    wanted = lake(entry=f'[table."shop.public.orders"]\n{entry}' if entry else "")
    found = judge(wanted, table, replace(ORDERS, table="zebras"))
    assert found.tables == (TableName("shop", "public", "zebras"),)
    (left_out,) = found.left_out
    assert left_out.table == TableName("shop", "public", table.table)
    assert all(problem.remedies or problem.expected for problem in left_out.problems)
    told = " ".join(map(str, left_out.problems))
    for part in expected:
        assert part in told


ROOT = replace(ORDERS, is_divided=True)
LEAF = replace(ORDERS, schema="parts", table="orders_eu", root=("public", "orders"))
LEAF_FLAWS = {
    "unlogged": (ROOT, replace(LEAF, is_permanent=False), ["parts.orders_eu, unlogged", "SET LOGGED"]),
    "on another server": (ROOT, replace(LEAF, is_foreign=True), ["parts.orders_eu, a foreign table"]),
    "without a replica identity": (
        ROOT,
        replace(LEAF, replica_identity="n"),
        ["could no longer update", "ALTER TABLE parts.orders_eu REPLICA IDENTITY FULL"],
    ),
    "without a full replica identity": (
        replace(ROOT, replica_identity="f"),
        LEAF,
        ["values would be lost", "ALTER TABLE parts.orders_eu REPLICA IDENTITY FULL"],
    ),
    "with another replica identity": (
        ROOT,
        replace(
            LEAF,
            replica_identity="i",
            unique_keys=(UniqueKey(frozenset({"number"}), is_replica_identity=True),),
        ),
        ["parts.orders_eu with a replica identity of number", "one that holds id"],
    ),
}


@pytest.mark.parametrize("flaw", LEAF_FLAWS)
def test_a_flaw_of_a_partition_leaves_the_whole_table_out(flaw: str) -> None:
    root, leaf, expected = LEAF_FLAWS[flaw]
    found = judge(lake(), root, leaf)
    assert found.tables == ()
    told = " ".join(str(problem) for each in found.left_out for problem in each.problems)
    for part in ("shop.public.orders", *expected):
        assert part in told


def test_partitions_of_a_table_that_is_taken_need_no_word() -> None:
    leaf = replace(LEAF, schema="public")
    found = judge(lake(), ROOT, leaf, replace(leaf, table="orders_us", replica_identity="f"))
    assert found == PostgresFindings(
        (TableName("shop", "public", "orders"),),
        parts=frozenset(TableName("shop", "public", table) for table in ("orders_eu", "orders_us")),
    )


@pytest.mark.parametrize(
    ("table", "key"),
    [
        (replace(ORDERS, replica_identity="f"), '["number"]'),
        (ORDERS, '["id"]'),
        (replace(ORDERS, unique_keys=DEFERRABLE, replica_identity="f"), '["number"]'),
        (replace(ORDERS, replica_identity="f"), '["number", "id"]'),
        (
            replace(
                ORDERS,
                replica_identity="i",
                unique_keys=(UniqueKey(frozenset({"number"}), is_replica_identity=True),),
            ),
            '["number"]',
        ),
    ],
)
def test_a_key_that_identifies_rows_and_that_deletes_report_is_accepted(table: TableFacts, key: str) -> None:
    wanted = lake(entry=f'[table."shop.public.orders"]\nkey = {key}')
    assert judge(wanted, table).tables == (TableName("shop", "public", "orders"),)


def test_a_pattern_that_matches_nothing_is_refused_with_the_tables_there_are() -> None:
    with pytest.raises(PostgresNotReady, match=r'found "sales\.\*", .*public\.orders') as caught:
        judge(lake('["public.*", "sales.*"]'), ORDERS)
    assert caught.value.where == "[source.shop].tables"


def test_a_pattern_in_the_wrong_case_gets_the_right_one_suggested() -> None:
    with pytest.raises(PostgresNotReady, match=r"did you mean public\.orders\? Case matters"):
        judge(lake('["public.Orders"]'), ORDERS)


def test_an_entry_for_a_table_that_does_not_exist_is_refused() -> None:
    with pytest.raises(PostgresNotReady, match=r'\[table\."shop\.public\.oders"\]'):
        judge(lake(entry='[table."shop.public.oders"]\ndeletes = "soft"'), ORDERS)


def test_in_our_own_database_a_missing_table_is_a_warning() -> None:
    wanted = lake(entry='[table."shop.public.orders"]\ndeletes = "soft"', is_local=True)
    found = judge(wanted)
    assert found.tables == ()
    assert ["pattern" in found.warnings[0], "does not exist" in found.warnings[1]] == [True, True]


def test_a_table_that_no_topic_can_name_is_left_out_and_reported() -> None:
    found = judge(lake(), ORDERS, replace(ORDERS, table="a.b"))
    assert found.tables == (TableName("shop", "public", "orders"),)
    (left_out,) = found.left_out
    assert str(left_out.table) == 'shop.public."a.b"'
    assert "cannot quote its name" in str(left_out.problems[0])


def test_generated_columns_are_reported() -> None:
    assert "note" in judge(lake(), replace(ORDERS, generated=("note",))).warnings[0]


def test_columns_that_debezium_leaves_out_are_reported() -> None:
    assert "will not have note" in judge(lake(), replace(ORDERS, unsent=("note",))).warnings[0]


def test_columns_whose_large_values_stop_debezium_are_reported_unless_the_log_holds_them() -> None:
    table = replace(ORDERS, unmarked=("note",))
    assert "an update that does not change note may stop" in judge(lake(), table).warnings[0]
    assert judge(lake(), replace(table, replica_identity="f")).warnings == ()


def test_all_flawed_tables_are_listed_at_once() -> None:
    flawed = [replace(ORDERS, table=table, unique_keys=()) for table in ("c", "a", "b")]
    assert [each.table.table for each in judge(lake(), *flawed).left_out] == ["a", "b", "c"]


def test_all_patterns_that_match_nothing_are_reported_at_once() -> None:
    with pytest.raises(PostgresNotReady, match=r'found "sales\.\*".*Also: .*found "stock\.\*"'):
        judge(lake('["public.*", "sales.*", "stock.*"]'), ORDERS)


def test_a_server_that_can_replicate_is_accepted() -> None:
    judge_server(postgres_source(lake()), SERVER, "h:5432/shop")
    own_slot = replace(SERVER, has_slot=True, plugin="pgoutput", slot_database="shop", wal_status="reserved")
    judge_server(
        postgres_source(lake()), replace(own_slot, slots_in_use=10, senders_in_use=10), "h:5432/shop"
    )


UNFIT = {
    "too old": (replace(SERVER, version=12, release="12.9"), ["PostgreSQL 12.9", "PostgreSQL 13"]),
    "not logical": (replace(SERVER, wal_level="replica"), ["wal_level = replica", "ALTER SYSTEM"]),
    "without an encoding": (replace(SERVER, encoding="SQL_ASCII"), ["SQL_ASCII", "ENCODING 'UTF8'"]),
    "a standby": (replace(SERVER, is_standby=True), ["a standby", "[source.shop.connection].host"]),
    "no slot left": (replace(SERVER, slots_in_use=10), ["all 10 replication slots", "max_replication_slots"]),
    "no sender left": (replace(SERVER, senders_in_use=10), ["all 10 WAL senders", "max_wal_senders"]),
    "our slot for another database": (
        replace(SERVER, has_slot=True, plugin="pgoutput", slot_database="crm"),
        ["for the database crm", "another name"],
    ),
    "our slot with another plugin": (
        replace(SERVER, has_slot=True, plugin="wal2json", slot_database="shop"),
        ["wal2json", "pgoutput"],
    ),
    "our slot lost": (
        replace(SERVER, has_slot=True, plugin="pgoutput", slot_database="shop", wal_status="lost"),
        ["wal_status = lost", "max_slot_wal_keep_size"],
    ),
}


def test_all_flaws_of_a_server_are_reported_at_once() -> None:
    with pytest.raises(PostgresNotReady, match=r"a standby.*Also: .*wal_level = replica"):
        judge_server(postgres_source(lake()), replace(SERVER, is_standby=True, wal_level="replica"), "h")


@pytest.mark.parametrize("flaw", UNFIT)
def test_a_server_that_cannot_replicate_is_refused_with_the_remedy(flaw: str) -> None:
    server, expected = UNFIT[flaw]
    with pytest.raises(PostgresNotReady) as caught:
        judge_server(postgres_source(lake()), server, "h:5432/shop")
    for part in ("source shop, h:5432/shop", *expected):
        assert part in str(caught.value)
    assert caught.value.remedies

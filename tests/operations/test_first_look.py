"""The lake file of `tributary init` says what was found, and the real parser reads it as it is meant."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.engines.engine import NotADatabaseUrl
from connectors.engines.survey import SurveyedTable
from tributary.contract.lake import parse_lake
from tributary.contract.naming import lake_name_problem, source_name_problem
from tributary.contract.patterns import is_traceable
from tributary.contract.table_name import TableName
from tributary.operations.first_look.database_url import parse_database_url
from tributary.operations.first_look.lake_text import (
    FirstLook,
    TableLook,
    housekeeping,
    lake_name,
    lake_text,
    source_name,
)
from tributary.operations.first_look.look import begin
from tributary.operations.first_look.personal import by_name, by_values, personal_columns

BARE = begin(parse_database_url("postgresql://me@db.example.org/web_shop?sslmode=require"))
ORDERS = TableLook(SurveyedTable("public", "orders", {"id": "bigint"}, 12, ("id",)))

names = st.text(min_size=1, max_size=12)
tables = st.builds(
    TableLook,
    facts=st.builds(
        SurveyedTable,
        schema=st.one_of(st.sampled_from(("public", "sales")), names),
        table=st.one_of(st.sampled_from(("a", "users", "alembic_version")), names),
        columns=st.just({"id": "bigint"}),
        rows=st.none() | st.integers(0, 2_000_000_000),
    ),
    key=st.lists(names, unique=True, max_size=3).map(tuple),
    problems=st.lists(st.text(max_size=60), max_size=2).map(tuple),
    personal=st.dictionaries(names, st.text(max_size=20), max_size=2),
)


def look(*found: TableLook) -> FirstLook:
    return replace(BARE, tables=found)


@given(st.lists(tables, min_size=1, max_size=6, unique_by=lambda table: table.name))
def test_the_parser_reads_any_lake_file_and_the_lake_takes_what_can_be_taken(found: list[TableLook]) -> None:
    # Of names that no pattern can match, nothing but an entry could be written.
    found = [one for one in found if all(map(is_traceable, one.name)) and one.facts.schema != "tributary"]
    if not found:
        return
    proposed = look(*found)
    lake = parse_lake(lake_text(proposed))
    (source,) = lake.sources
    for table in proposed.taken:
        policy = lake.policy(TableName(source.name, *table.name))
        assert source.matches(*table.name)
        assert policy.key == (table.key or None)
        assert policy.buckets == max(2, min(1024, -(-(table.facts.rows or 0) // 1_000_000)))
    plain = [one for one in proposed.tables if not set("*?.") & set("".join(one.name)) and one.problems]
    if proposed.taken and not any(set("*?") & set("".join(one.name)) for one in proposed.tables):
        assert not any(source.matches(*table.name) for table in plain)


def test_a_lake_file_has_the_address_and_a_variable_but_no_password() -> None:
    url = parse_database_url("postgresql://me:s3cret%40@db.example.org:5433/web_shop?sslmode=require")
    text = lake_text(replace(begin(url), tables=(ORDERS,)))
    assert url.password is not None
    assert url.password.get_secret_value() == "s3cret@"
    assert "s3cret" not in text
    (source,) = parse_lake(text).sources
    assert source.name == "web_shop"
    assert source.model_dump()["database"] == "web_shop"
    assert source.connection is not None
    assert source.connection.model_dump() == {
        "host": "db.example.org",
        "port": 5433,
        "user": None,
        "password_env": None,
        "admin_user": "me",
        "admin_password_env": "WEB_SHOP_ADMIN_PASSWORD",
        "sslmode": "require",
        "sslrootcert": None,
    }


def test_a_table_that_cannot_be_taken_is_excluded_below_its_reasons() -> None:
    bad = replace(ORDERS, facts=replace(ORDERS.facts, table="log"), problems=("it is\nunlogged", "no key"))
    text = lake_text(look(ORDERS, bad))
    assert '    # it is unlogged\n    # no key\n    "!public.log",\n' in text
    assert tomllib.loads(text)["source"]["web_shop"]["tables"] == ["public.*", "!public.log"]


def test_a_table_for_a_tool_is_only_proposed_to_be_left_out() -> None:
    table = replace(ORDERS, facts=replace(ORDERS.facts, table="alembic_version"))
    text = lake_text(look(ORDERS, table))
    assert '    # "!public.alembic_version",' in text
    assert tomllib.loads(text)["source"]["web_shop"]["tables"] == ["public.*"]


def test_what_stops_a_start_is_at_the_top_of_the_file() -> None:
    text = lake_text(replace(look(ORDERS), problems=("wal_level = replica",)))
    assert text.index("TO DO before the first start: wal_level = replica") < text.index("[lake]")


def test_personal_columns_are_in_comments_alone() -> None:
    table = replace(ORDERS, personal={"e\nmail": "an e-mail\naddress, by its name"})
    text = lake_text(look(table))
    assert '#     "e\\nmail",  # an e-mail address, by its name\n' in text
    assert parse_lake(text) == parse_lake(lake_text(look(ORDERS)))


@pytest.mark.parametrize("rows", [12, 4_500_000])
def test_a_person_who_removes_the_comment_marks_masks_the_columns_but_not_the_key(rows: int) -> None:
    found = {"id": "a person's name", "email": "an e-mail address", "phone": "a phone number"}
    table = replace(ORDERS, facts=replace(ORDERS.facts, rows=rows), personal=found)
    text = lake_text(look(table))
    head, _, section = text.partition('[table."')
    proposed = re.sub(r"^# (?=mask|    |\])", "", f'[table."{section}', flags=re.MULTILINE)
    lake = parse_lake(head.removesuffix("# ") + proposed)
    assert lake.policy(TableName("web_shop", "public", "orders")).mask == ("email", "phone")
    assert "id looks like a person's name, but is in the key" in text


@given(st.text(max_size=40))
def test_every_name_leads_to_a_possible_name_of_a_lake_and_a_source(text: str) -> None:
    assert lake_name_problem(lake_name(text)) is None
    assert source_name_problem(source_name(text)) is None


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("web_shop", "no scheme"),
        ("oracle://me@host/db", "oracle://…"),
        ("postgresql://me:s3cret@/db", "no host"),
        ("postgresql://:s3cret@host/db", "no user"),
        ("postgresql://me:s3cret@host:x/db", "a port that is no number"),
        ("postgresql://me:s3cret@host:99999/db", "found 99999, expected a number from 1 to 65535"),
        ("postgresql://me:s3cret@host", "names no database"),
        ("postgresql://me:s3cret@host/db?channel_binding=require", "channel_binding"),
        ("mysql://me:s3cret@host/db?ssl-mode=VERIFY_CA", "ssl-mode=VERIFY_CA"),
        ("sqlserver://me:s3cret@host", "names no database"),
        ("sqlserver://me:s3cret@host/db?driver=odbc", "driver"),
    ],
)
def test_a_wrong_url_is_told_without_its_password(url: str, told: str) -> None:
    with pytest.raises(NotADatabaseUrl) as error:
        begin(parse_database_url(url))
    assert told in str(error.value)
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "engine", "entries"),
    [
        ("postgres://me@host/db", "postgres", {}),
        ("mysql://me@host/db?ssl-mode=REQUIRED", "mysql", {"ssl_mode": "required"}),
        ("mariadb://me@127.0.0.1/db", "mariadb", {"ssl_mode": "disabled"}),
        ("mariadb://me@host", "mariadb", {}),
        ("sqlserver://me@host/db?ssl_mode=disabled", "sqlserver", {"ssl_mode": "disabled"}),
        ("mssql://me@host/db", "sqlserver", {}),
    ],
)
def test_a_url_leads_to_its_engine_and_entries(url: str, engine: str, entries: dict[str, str]) -> None:
    begun = begin(parse_database_url(url))
    (source,) = parse_lake(lake_text(begun)).sources
    assert (begun.engine, source.engine) == (engine, engine)
    assert begun.entries.connection == entries


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("email", "an e-mail address"),
        ("customer_email_2", "an e-mail address"),
        ("workEmail", "an e-mail address"),
        ("mobile_phone", "a phone number"),
        ("IBAN", "a bank account"),
        ("firstName", "a person's name"),
        ("date_of_birth", "a date of birth"),
        ("client_ip", "a network address of a person"),
        ("password_hash", "a secret"),
        ("telemetry", None),
        ("description", None),
        ("taxonomy_idx", None),
        ("shipping_total", None),
        ("event_name", None),
    ],
)
def test_a_name_tells_what_a_column_holds(column: str, kind: str | None) -> None:
    assert by_name(column) == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a@b.example", "c.d+e@f.example.org", None, ""], "an e-mail address"),
        (["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432"], "a bank account"),
        (["DE89 3704 0044 0532 0130 01"], None),
        (["4111 1111 1111 1111", "5500-0000-0000-0004", "340000000000009"], "a card number"),
        (["4111111111111112", "5500000000000005", "340000000000008"], None),
        (["+49 30 123456", "(030) 123-4567", "+1 555 010 9999"], "a phone number"),
        (["2026-01-02 10:00", "2026-01-03 11:00", "2026-01-04 12:00"], None),
        (["1234567", "2345678", "3456789"], None),
        (["see a@b.example", "none", "none"], None),
        ([], None),
    ],
)
def test_the_form_of_values_tells_what_a_column_holds(values: list[str | None], kind: str | None) -> None:
    assert by_values(values) == kind


def test_values_say_more_than_a_name() -> None:
    rows = [["a@b.example", "1"], ["c@d.example", "2"]]
    found = personal_columns(("contact", "n", "phone"), ("contact", "n"), rows)
    assert found == {"contact": "an e-mail address, by its values", "phone": "a phone number, by its name"}


@pytest.mark.parametrize("table", ["orders", "users", "backups", "cached", "tmp"])
def test_a_table_of_the_application_is_no_housekeeping(table: str) -> None:
    assert housekeeping(table) is None

"""The T-SQL for SQL Server parses, and means what its Python callers expect. No server runs here."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal

import duckdb
import pytest
import sqlglot
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from connectors.engines.sqlserver import (
    capture,
    catalog,
    own_database,
    preparation,
    prepared_check,
    progress,
    survey,
)
from connectors.engines.sqlserver.forms import _BY_TYPE, readable
from connectors.engines.sqlserver.names import connector_user
from connectors.engines.sqlserver.sql import identifier, like, literal
from connectors.engines.survey import SurveyedTable
from tests.contract.lake_files import IDENTIFIERS
from tributary.contract.engines.sqlserver import SqlServerSource
from tributary.contract.lake import Lake, parse_lake
from tributary.contract.patterns import TablePattern
from tributary.contract.table_name import TableName

LAKE = parse_lake(
    '[lake]\nname = "shop-1"\n[source.erp]\nengine = "sqlserver"\ndatabase = "ERP-1"\n'
    'tables = ["dbo.*", "sales_?.order_*", "!dbo.tmp%[x]\'"]\n'
)
UNTAKEN = (TableName("erp", "dbo", "it's [odd]"),)


def source_of(lake: Lake = LAKE) -> SqlServerSource:
    source = lake.source("erp")
    assert isinstance(source, SqlServerSource)
    return source


FOLLOWED = capture.tables_query(capture.is_followed(LAKE, source_of(), UNTAKEN))
QUERIES = {
    "columns": (
        capture.COLUMNS,
        ("schema", "table", "column", "id", "type", "scale", "length", "nullable", "taken", "computed"),
    ),
    "capture instances": (
        capture.INSTANCES,
        ("table_id", "name", "change_table", "column", "computed"),
    ),
    "what tables need": (
        FOLLOWED,
        ("schema", "table", "id", "columns", "instance", "is_partitioned"),
    ),
    "the server": (
        catalog._SERVER,
        ("version", "engine_edition", "edition", "is_cdc_enabled", "snapshot_isolation", "is_read_only"),
    ),
    "the agent": (catalog._AGENT, ("runs",)),
    "the capture job": (catalog.SECONDS_BEHIND, ("seconds",)),
    "tables that a user does not see": (catalog._UNSEEN, ("id",)),
    "tables": (catalog._TABLES, ("schema", "table", "id", "kind")),
    "keys": (catalog._KEYS, ("schema", "table", "name", "is_primary", "column")),
    "rows of each table": (survey.ROWS, ("id", "about")),
    "whether a user may prepare": (survey.MAY_PREPARE, ("may",)),
    "a sample": (
        survey.sample_query(SurveyedTable("dbo", "o]dd", {"a": "int", "b'c": "text"}), ["a", "b'c"]),
        ("c0", "c1"),
    ),
    "what is missing": (prepared_check.missing_preparation_query(LAKE, source_of()), ("problem",)),
    "what is missing besides tables": (prepared_check.missing_setup_query(LAKE, source_of()), ("problem",)),
    "whether CDC is on": (own_database.IS_CDC_ON, ("is_cdc_enabled",)),
    "what is not recorded": (own_database.unrecorded_query(LAKE, source_of()), ("table", "instances")),
    "the change table": (progress._CHANGE_TABLE, ("name",)),
    "what the connector has still to read": (progress._BEHIND, ("behind_ms", "is_gone")),
    "the recorded change": (progress._RECORDED.format(changes="[cdc].[x]"), ("lsn", "beaten_at")),
}


def with_values(query: str) -> str:
    return query.replace("%s", "N'a'")


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_one_statement_with_the_columns_that_python_reads(name: str) -> None:
    query, expected = QUERIES[name]

    (parsed,) = sqlglot.parse(with_values(query), read="tsql")

    assert isinstance(parsed, exp.Query)
    assert tuple(parsed.named_selects) == expected


@pytest.mark.parametrize("name", QUERIES)
def test_each_column_of_a_query_belongs_to_a_table_of_the_query(name: str) -> None:
    parsed = sqlglot.parse_one(with_values(QUERIES[name][0]), read="tsql")
    known = {source.alias_or_name for source in parsed.find_all(exp.Table, exp.Subquery, exp.Lateral)}
    assert {column.table for column in parsed.find_all(exp.Column)} - {""} <= known


def batches() -> tuple[str, ...]:
    return preparation.setup_batches(LAKE, source_of(), UNTAKEN)


def tokens_of(text: str) -> list[Token]:
    return sqlglot.tokenize(text, read="tsql")


def test_the_batches_of_the_script_are_balanced() -> None:
    for batch in batches():
        assert tokens_of(batch)
        words = re.findall(r"\w+|[()]", re.sub(r"'(?:[^']|'')*'", "", batch))
        assert words.count("BEGIN") + words.count("CASE") == words.count("END")
        assert words.count("(") == words.count(")")


def test_the_script_runs_the_batches_that_an_administrator_in_the_lake_file_runs() -> None:
    script = preparation.setup_script(LAKE, source_of(), UNTAKEN)

    parts = [part.strip() for part in script.split("\nGO\n")]

    assert parts[1] == "USE [ERP-1];"
    assert tuple(parts[2:-1]) == batches()
    assert f"ALTER LOGIN [{connector_user(LAKE, source_of())}]" in parts[-1]


def test_each_statement_of_the_script_changes_nothing_if_it_ran_before() -> None:
    """Creating is conditional, and the rest (grants, members of roles, MERGE) may be repeated."""
    creating = [batch for batch in batches() if re.search(r"\bCREATE\b|sp_cdc_enable|rds_cdc_enable", batch)]

    assert len(creating) == 8
    for batch in creating:
        assert batch.startswith("IF ") or "IF @newest = @instance" in batch


def test_a_captured_table_is_recorded_with_our_names_and_without_computed_columns() -> None:
    (capturing,) = [batch for batch in batches() if "sp_cdc_enable_table" in batch]

    assert "@role_name = N'tributary_reader'" in capturing
    assert "@capture_instance = @instance" in capturing
    assert "CONCAT(N'tributary_', t.object_id, N'_', w.digest)" in capturing
    assert "c.is_computed = 0" in capturing
    # A partition that another table takes over would be gone without a change.
    assert "@switch = CASE WHEN @partitioned = 1 THEN 0 ELSE 1 END" in capturing


def own_batches() -> tuple[str, ...]:
    return (
        own_database.creation(source_of()),
        own_database.ONE_AT_A_TIME,
        *own_database.retention(4320, has_standby=True),
        *own_database.removal_batches(LAKE, source_of()),
    )


def test_the_batches_for_a_database_of_the_lakes_own_are_balanced() -> None:
    for batch in own_batches():
        assert tokens_of(batch)
        words = re.findall(r"\w+|[()]", re.sub(r"'(?:[^']|'')*'", "", batch))
        assert words.count("BEGIN") == words.count("END")
        assert words.count("(") == words.count(")")


def test_a_removal_may_run_again_and_drops_only_what_is_the_sources_own() -> None:
    *others, user, login = own_database.removal_batches(LAKE, source_of())

    assert all(batch.startswith("IF ") for batch in (*others, user))
    assert "\nIF @sid IS NOT NULL AND @used = 0 DROP LOGIN" in login
    assert "DROP USER [tributary_shop_1__erp]" in user
    assert "DROP LOGIN [tributary_shop_1__erp]" in login
    dropped = re.findall(r"DROP TABLE (\S+);", "".join(others))
    assert dropped == ["[tributary].[signals_shop_1__erp]"]
    assert "WHERE lake = N'shop-1' AND source = N'erp'" in "".join(others)


def test_a_login_stays_while_another_database_has_a_user_for_it() -> None:
    login = own_database.removal_batches(LAKE, source_of())[-1]

    assert "sys.database_principals WHERE sid = @sid" in login
    assert "FROM sys.databases WHERE state = 0" in login
    assert login.endswith("IF @sid IS NOT NULL AND @used = 0 DROP LOGIN [tributary_shop_1__erp];")


def test_debeziums_heartbeat_writes_one_row_once_a_minute_at_most() -> None:
    query = preparation.heartbeat_query(LAKE, source_of())

    (parsed,) = sqlglot.parse(query, read="tsql")
    assert isinstance(parsed, exp.Merge)
    assert parsed.this.sql("tsql").startswith("[ERP-1].[tributary].[heartbeat]")
    updated, inserted = parsed.args["whens"].expressions
    assert updated.args["condition"].sql("tsql") == ("h.beaten_at < DATEADD(MINUTE, -1, SYSUTCDATETIME())")
    assert inserted.args["matched"] is False
    statement = preparation.heartbeat_statement(LAKE, source_of())
    assert "DATEADD" not in statement


OLD, OFFSET, LATER, LAST = (bytes([0] * 9 + [number]) for number in (1, 2, 3, 4))


@pytest.mark.parametrize(
    ("mapping", "found"),
    [
        # The capture job's own entries, whose transaction is 0, are no changes.
        ({OLD: 1, OFFSET: 1, LATER: 0, LAST: 0}, (0, 0)),
        ({LATER: 0, LAST: 0}, (None, 0)),
        ({OFFSET: 1, LATER: 0, LAST: 1}, (2000, 0)),
        ({OLD: 0, LAST: 1}, (None, 0)),
        ({LATER: 0, LAST: 1}, (None, 1)),
        ({}, (None, 0)),
    ],
)
def test_only_changes_count_as_unread_and_as_gone(
    mapping: dict[bytes, int], found: tuple[object, int]
) -> None:
    """DuckDB runs the query with a table of that name, and a function for the one of CDC."""
    query = (
        progress._BEHIND.replace("CONVERT(binary(10), %s, 1)", "?::BLOB")
        .replace("sys.fn_cdc_map_lsn_to_time(", "time_of(")
        .replace("DATEDIFF_BIG(millisecond,", "date_diff('millisecond',")
        .replace("0x00", "'\\x00'::BLOB")
    )
    with duckdb.connect() as database:
        database.execute(
            "CREATE SCHEMA cdc; CREATE TABLE cdc.lsn_time_mapping (start_lsn BLOB, tran_id BLOB)"
        )
        database.execute(
            "CREATE MACRO time_of(lsn) AS (SELECT TIMESTAMP '2026-01-01' + to_seconds(hex(m.start_lsn)::INT)"
            " FROM cdc.lsn_time_mapping AS m WHERE m.start_lsn = lsn)"
        )
        for lsn, transaction in mapping.items():
            database.execute("INSERT INTO cdc.lsn_time_mapping VALUES (?, ?)", [lsn, bytes([transaction])])
        assert database.execute(query, [OFFSET]).fetchone() == found


def test_the_capture_of_the_applications_tables_ends_only_with_the_last_source() -> None:
    (ending,) = [
        batch for batch in own_database.removal_batches(LAKE, source_of()) if "sp_cdc_disable_table" in batch
    ]

    condition, _, _ = ending.partition("BEGIN")
    assert "NOT EXISTS" in condition
    assert "N'signals[_]%'" in condition
    assert "ct.capture_instance LIKE N'tributary[_]%'" in ending


def test_the_look_for_unrecorded_tables_and_the_capture_agree_on_what_fits() -> None:
    capturing = preparation.capture_batch(LAKE, source_of())
    looking = own_database.unrecorded_query(LAKE, source_of())
    of_capture = capture.fits("@newest", "@instance", "@recorded", "@columns")

    assert f"IF {of_capture}" in capturing
    for variable, column in {
        "@newest": "n.name",
        "@instance": "f.instance",
        "@recorded": "n.recorded",
        "@columns": "f.columns",
    }.items():
        of_capture = of_capture.replace(variable, column)
    assert of_capture in looking
    # A table without an instance has NULL there, and is unrecorded too.
    assert f"CASE WHEN {of_capture} THEN 1 ELSE 0 END = 0" in looking


def test_changes_are_kept_after_a_failover_too() -> None:
    assert len(own_database.retention(60, has_standby=False)) == 1
    here, there = own_database.retention(60, has_standby=True)
    assert "@retention = 60" in here
    assert there == "EXEC rdsadmin.dbo.rds_set_configuration 'cdc_cleanup_retention', 60;"


@given(IDENTIFIERS)
@example("a]b")
@example("it's")
def test_a_name_and_a_text_are_one_token_whatever_is_in_them(name: str) -> None:
    (quoted,) = tokens_of(identifier(name))
    assert quoted.token_type == TokenType.IDENTIFIER
    assert quoted.text.replace("]]", "]") == name.replace("]]", "]")
    (text,) = tokens_of(literal(name))
    assert text.token_type == TokenType.NATIONAL_STRING
    assert text.text == name


@given(st.text("ab%_[]*?'^-", max_size=5), st.text("ab%_[]'^-", max_size=5))
def test_like_matches_what_the_pattern_of_the_lake_file_matches(wildcard: str, name: str) -> None:
    pattern = like(wildcard)[2:-1].replace("''", "'")
    assert matches_like(pattern, name) == TablePattern(wildcard, "t").may_match_in(name)


def matches_like(pattern: str, text: str) -> bool:
    """LIKE of T-SQL: `%`, `_`, and one character of a set in brackets."""
    parts = re.findall(r"\[(.)\]|(%)|(_)|(.)", pattern, re.DOTALL)
    regex = "".join(
        ".*" if many else "." if one else re.escape(in_set or plain) for in_set, many, one, plain in parts
    )
    return re.fullmatch(regex, text, re.DOTALL) is not None


@pytest.mark.parametrize("data_type", _BY_TYPE)
def test_the_form_of_each_type_is_one_expression(data_type: str) -> None:
    how = readable(data_type)
    assert how is not None
    parsed = sqlglot.parse_one(f"SELECT {how.expression('[c]')} AS form", read="tsql")
    assert {column.name for column in parsed.find_all(exp.Column)} == {"c"}


def test_every_taken_type_but_xml_has_a_form() -> None:
    assert {*capture.TAKEN_TYPES} - {*_BY_TYPE} == {"xml"}
    assert {*_BY_TYPE} <= {*capture.TAKEN_TYPES}


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=6))
@example(Decimal("0.000000"))
@example(Decimal("-10.500000"))
@example(Decimal("100.000000"))
def test_a_number_is_written_as_the_lakes_form_writes_it(number: Decimal) -> None:
    """DuckDB runs the functions that T-SQL has too."""
    how = readable("decimal")
    assert how is not None
    written = how.expression("c").replace("CONVERT(varchar(60), c)", "c")
    computed = written.replace("CHARINDEX('.', c)", "instr(c, '.')")
    lake = how.form.lake("CAST(c AS DECIMAL(38,6))")
    text = format(number.quantize(Decimal("0.000001")) + 0, "f")
    row = duckdb.execute(f"SELECT {computed}, {lake} FROM (SELECT ? AS c)", [text]).fetchone()
    assert row is not None
    assert row[0] == row[1]


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)))
def test_a_moment_counts_microseconds_from_1970(moment: datetime) -> None:
    """DATEDIFF_BIG counts the borders between two moments, as DuckDB's date_diff does."""
    how = readable("datetime2")
    assert how is not None
    assert how.expression("c") == (
        "DATEDIFF_BIG(microsecond, CAST('1970-01-01' AS datetime2(7)), CAST(c AS datetime2(7)))"
    )
    counted = "date_diff('microsecond', TIMESTAMP '1970-01-01', c)"
    row = duckdb.execute(f"SELECT {counted}, epoch_us(c) FROM (SELECT ? AS c)", [moment]).fetchone()
    assert row is not None
    assert row[0] == row[1] == (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)

"""A tile's SQL means the same in Athena as in DuckDB, or is refused when the stacks are synthesized.

The expected words are those of Trino's documentation.
"""

from __future__ import annotations

import re

import pytest

from stacks.analytics.athena_sql import Column, TileQuery, athena_query
from tests.stacks.one_stack import lake_with
from tributary.contract.boards.board import BoardError


def _query(value: str, source: str = "t") -> TileQuery:
    return athena_query(lake_with(), f"SELECT {value} AS v FROM {source}", "b.toml, tile 1 (T)")


def _written(value: str) -> str:
    """Return a value in Athena's SQL."""
    query = _query(value)
    written = query.typed({"v": "STRING"})
    return re.sub(r".*? AS column_1 FROM \(SELECT (.*) AS v FROM .*", r"\1", written)


@pytest.mark.parametrize(
    ("duckdb", "athena"),
    [
        (
            "epoch_ms(at::timestamp)",
            "DATE_DIFF('millisecond', DATE_TRUNC('millisecond', CAST('1970-01-01' AS TIMESTAMP)), "
            "DATE_TRUNC('millisecond', CAST(at AS TIMESTAMP)))",
        ),
        (
            "epoch_ms(n::bigint)",
            "CAST(FROM_UNIXTIME(CAST(CAST(n AS BIGINT) AS DOUBLE) / POW(10, 3)) AS TIMESTAMP)",
        ),
        ("epoch(at)", "TO_UNIXTIME(CAST(at AS TIMESTAMP))"),
        ("extract(epoch FROM at)", "TO_UNIXTIME(CAST(at AS TIMESTAMP))"),
        ("date_part('year', at)", "YEAR(at)"),
        ("extract(dow FROM at)", "MOD(DAY_OF_WEEK(at), 7)"),
        ("dayofweek(at)", "MOD(DAY_OF_WEEK(at), 7)"),
        ("weekday(at)", "MOD(DAY_OF_WEEK(at), 7)"),
        ("extract(isodow FROM at)", "DAY_OF_WEEK(at)"),
        ("extract(isoyear FROM at)", "YEAR_OF_WEEK(at)"),
        ("extract(hour FROM at::date)", "HOUR(CAST(CAST(at AS DATE) AS TIMESTAMP))"),
        ("d::date + 1", "DATE_ADD('day', 1, CAST(d AS DATE))"),
        ("current_date - 7", "DATE_ADD('day', -(7), CURRENT_DATE)"),
        ("at > now() - INTERVAL 7 DAY", "at > DATE_ADD('day', -7, CURRENT_TIMESTAMP)"),
        ("date_add(at, INTERVAL 1 DAY)", "DATE_ADD('day', 1, at)"),
        ("at + INTERVAL 1 HOUR", "DATE_ADD('hour', 1, CAST(at AS TIMESTAMP))"),
        ("at + INTERVAL (n) DAY", "DATE_ADD('day', CAST((n) AS BIGINT), at)"),
        (
            "date_diff('hour', a, b)",
            "DATE_DIFF('hour', DATE_TRUNC('hour', CAST(a AS TIMESTAMP)), "
            "DATE_TRUNC('hour', CAST(b AS TIMESTAMP)))",
        ),
        ("a::date >= '2026-01-31'", "CAST(a AS DATE) >= CAST('2026-01-31' AS DATE)"),
        (
            "CASE at::date WHEN '2026-01-31' THEN 'x' END",
            "CASE CAST(at AS DATE) WHEN CAST('2026-01-31' AS DATE) THEN 'x' END",
        ),
        ("at AT TIME ZONE 'UTC'", "CAST(AT_TIMEZONE(at, 'UTC') AS TIMESTAMP)"),
        (
            "at::timestamptz AT TIME ZONE 'Europe/Berlin'",
            "CAST(AT_TIMEZONE(CAST(at AS TIMESTAMP WITH TIME ZONE), 'Europe/Berlin') AS TIMESTAMP)",
        ),
        (
            "at::timestamp AT TIME ZONE 'Europe/Berlin'",
            "WITH_TIMEZONE(CAST(at AS TIMESTAMP), 'Europe/Berlin')",
        ),
        ("strftime(at, '%G-W%V')", "DATE_FORMAT(at, '%x-W%v')"),
        ("strftime(at, '%-d.%-m.%y %A')", "DATE_FORMAT(at, '%e.%c.%y %W')"),
    ],
)
def test_times_keep_their_meaning(duckdb: str, athena: str) -> None:
    assert _written(duckdb) == athena


@pytest.mark.parametrize(
    ("duckdb", "athena"),
    [
        ("a::decimal(10, 2) / 3", "CAST(CAST(a AS DECIMAL(10, 2)) AS DOUBLE) / 3"),
        ("1.0 / a", "CAST(1.0 AS DOUBLE) / a"),
        ("count(*) // 10", "((COUNT(*)) / (10))"),
        ("avg(price)", "AVG(CAST(price AS DOUBLE))"),
        ("avg(DISTINCT price)", "AVG(DISTINCT CAST(price AS DOUBLE))"),
        ("sum(a > 1)", "SUM(CAST(a > 1 AS INTEGER))"),
        ("log(a)", "LOG10(a)"),
        (
            "greatest(a, b)",
            "ARRAY_MAX(FILTER(ARRAY[a, b], each_value -> NOT each_value IS NULL))",
        ),
        ("least(a, b)", "ARRAY_MIN(FILTER(ARRAY[a, b], each_value -> NOT each_value IS NULL))"),
        ("any_value(a)", "ARBITRARY(a)"),
        ("any_value(a) OVER (PARTITION BY b)", "ARBITRARY(a) OVER (PARTITION BY b)"),
        ("count()", "COUNT(*)"),
        ("arg_max(a, b)", "MAX_BY(a, b) FILTER(WHERE NOT a IS NULL)"),
        ("arg_min(a, b) FILTER (c > 1)", "MIN_BY(a, b) FILTER(WHERE c > 1 AND NOT a IS NULL)"),
        ("a::hugeint", "CAST(a AS DECIMAL(38, 0))"),
        ("a::ubigint", "CAST(a AS DECIMAL(20, 0))"),
    ],
)
def test_numbers_keep_their_digits(duckdb: str, athena: str) -> None:
    assert _written(duckdb) == athena


@pytest.mark.parametrize(
    ("duckdb", "athena"),
    [
        ("right(name, 2)", "SUBSTR(name, GREATEST(LENGTH(name) - (2) + 1, 1))"),
        ("trim(name)", "TRIM(' ' FROM name)"),
        ("contains(name, 'a')", "STRPOS(name, 'a') > 0"),
        ("repeat(name, 2)", "ARRAY_JOIN(REPEAT(name, 2), '')"),
        (
            "string_agg(name, '; ')",
            "LISTAGG(CAST(name AS VARCHAR), '; ') WITHIN GROUP (ORDER BY CAST(name AS VARCHAR))",
        ),
        (
            "string_agg(n::varchar, '; ' ORDER BY b DESC)",
            "LISTAGG(CAST(n AS VARCHAR), '; ') WITHIN GROUP (ORDER BY b DESC)",
        ),
        (
            "string_agg(DISTINCT name, '; ' ORDER BY name DESC)",
            "LISTAGG(DISTINCT CAST(name AS VARCHAR), '; ')"
            " WITHIN GROUP (ORDER BY CAST(name AS VARCHAR) DESC)",
        ),
        ("md5(name)", "LOWER(TO_HEX(MD5(TO_UTF8(name))))"),
        ("regexp_replace(name, '(a)b', '\\1$', 'g')", "REGEXP_REPLACE(name, '(a)b', '$1\\$')"),
        (
            "regexp_extract(name, 'a(b)', 1)",
            "CASE WHEN NOT name IS NULL THEN COALESCE(REGEXP_EXTRACT(name, 'a(b)', 1), '') END",
        ),
        ("x::json->>'a'", "JSON_EXTRACT_SCALAR(JSON_PARSE(x), '$.a')"),
        ("list(a)[2]", "ELEMENT_AT(ARRAY_AGG(a), 2)"),
        ("list_extract(l, 2)", "ELEMENT_AT(l, 2)"),
        ("list_position(l, 'x')", "NULLIF(ARRAY_POSITION(l, 'x'), 0)"),
        ("len(list(a))", "CARDINALITY(ARRAY_AGG(a))"),
        ("len(list(a) || list(b))", "CARDINALITY(CONCAT(ARRAY_AGG(a), ARRAY_AGG(b)))"),
        ("len(name)", "LENGTH(name)"),
    ],
)
def test_texts_and_lists_keep_their_parts(duckdb: str, athena: str) -> None:
    assert _written(duckdb) == athena


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("epoch_ms(at)", r"epoch_ms\(CAST\(.?at.? AS TIMESTAMP\)\) for a time"),
        ("epoch(a - b)", "date_diff"),
        ("a::timestamp - b", "date_diff"),
        ("current_date - d", "date_diff"),
        ("extract(century FROM at)", "one of these parts"),
        ("date_trunc('decade', at)", "one of these units"),
        ("date_diff('microsecond', a, b)", "one of these units"),
        ("at + INTERVAL '1 day 2 hours'", "one number and one unit"),
        ("at >= '2026-01-31'", "Write DATE '2026-01-31' for a time"),
        ("CASE at WHEN '2026-01-31' THEN 'x' END", "Write DATE '2026-01-31' for a time"),
        ("at BETWEEN '2026-01-31 10:00' AND '2026-02-01'", "Write TIMESTAMP '2026-01-31 10:00'"),
        ("at AT TIME ZONE 'Europe/Berlin'", "AS TIMESTAMPTZ"),
        ("strftime(at, '%U')", "Replace %U"),
        ("strftime(at, '%x')", "Replace %x"),
        ("strftime(at, '%-y')", "Replace %-y"),
        ("a // 2", r"CAST\(a AS BIGINT\) // CAST\(2 AS BIGINT\)"),
        ("avg(at::timestamp)", "Average a number"),
        ("first(a)", "arg_min"),
        ("name[1]", "substr"),
        ("name[1:3]", "substr"),
        ("substr(name, 0, 2)", "Count letters from 1"),
        ("right(name, -2)", "substr"),
        ("contains(a, b)", "list_contains"),
        ("avg(a)::varchar", "DECIMAL"),
        ("'at ' || at::timestamp", "strftime"),
        ("format('{}', a)", "concat"),
        ("regexp_replace(name, 'a', 'b')", "option 'g'"),
        ("regexp_matches(name, 'a', 'i')", r"\(\?i\)"),
        ("name SIMILAR TO 'a'", "regexp_matches"),
        ("a::interval", "Cast to a type that Athena has"),
        ("array_slice(l, 2, 3)", "list_extract"),
    ],
)
def test_what_may_mean_something_else_is_refused_with_words_that_help(value: str, remedy: str) -> None:
    with pytest.raises(BoardError, match="no sure counterpart on Athena") as caught:
        _query(value)
    assert re.search(remedy, str(caught.value))
    assert caught.value.where == "b.toml, tile 1 (T), key sql"


@pytest.mark.parametrize(
    ("source", "value", "athena"),
    [
        ("(SELECT at::date AS day FROM t) AS days", "day + 1", "DATE_ADD('day', 1, days.day)"),
        ("(SELECT price::decimal(9, 2) AS p FROM t) AS ps", "p / 3", "CAST(ps.p AS DOUBLE) / 3"),
    ],
)
def test_a_type_from_an_inner_query_is_known(source: str, value: str, athena: str) -> None:
    assert athena in _query(value, source).typed({"v": "STRING"})


def test_a_type_from_a_named_query_is_known() -> None:
    sql = "WITH days AS (SELECT at::timestamp AS at FROM t) SELECT epoch_ms(at) AS v FROM days"
    written = athena_query(lake_with(), sql, "tile").typed({"v": "DECIMAL"})
    assert "DATE_TRUNC('millisecond', CAST(days.at AS TIMESTAMP))" in written
    assert "FROM_UNIXTIME" not in written


@pytest.mark.parametrize(
    ("value", "column"),
    [
        ("max(d::date - e::date)", Column("v", "DECIMAL")),
        ("epoch_ms(at::timestamp)", Column("v", "DECIMAL")),
        ("d::date - 1", Column("v", "DATETIME", "DAY")),
        ("at::time", Column("v", "STRING")),
    ],
)
def test_a_column_has_the_type_of_its_answer(value: str, column: Column) -> None:
    assert _query(value).columns == (column,)


@pytest.mark.parametrize(
    ("sql", "remedy"),
    [
        ("SELECT a AS v FROM t ASOF JOIN u USING (k, at)", r"row_number\(\)"),
        ("SELECT a AS v FROM t POSITIONAL JOIN u", "Join by a key"),
        ("SELECT a AS v FROM t SEMI JOIN u USING (k)", r"key IN \(SELECT"),
        ("SELECT a AS v FROM t ANTI JOIN u USING (k)", r"key NOT IN \(SELECT"),
        ("SELECT a AS v FROM t UNION ALL BY NAME SELECT b AS v FROM u", "in the same order"),
        ("SELECT v FROM (SELECT * EXCLUDE (b) FROM t)", "Name the columns"),
        ("SELECT v FROM (SELECT * REPLACE (a + 1 AS a) FROM t)", "Name the columns"),
        ("SELECT a AS v FROM t TABLESAMPLE 10%", "Read all rows"),
        ("SELECT a AS v FROM t LIMIT 10%", "Limit the number of rows"),
        ("SELECT v FROM (PIVOT t ON a USING sum(b)) x", "aggregate with FILTER"),
        ("SELECT a + 1 AS v, v * 2 AS w FROM t", r"Write a \+ 1 instead of its alias"),
        ("SELECT a + 1 AS v FROM t WHERE v > 2", r"Write a \+ 1 instead of its alias"),
        ("SELECT a, sum(b) AS v FROM t GROUP BY a HAVING v > 2", r"Write SUM\(b\) instead of its alias"),
    ],
)
def test_a_clause_that_athena_lacks_is_refused_with_words_that_help(sql: str, remedy: str) -> None:
    with pytest.raises(BoardError, match="no sure counterpart on Athena") as caught:
        athena_query(lake_with(), sql, "tile")
    assert re.search(remedy, str(caught.value))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT upper(name) AS name FROM t WHERE name = 'a'",
        "SELECT a + 1 AS v FROM t WHERE t.v > 2 ORDER BY v",
        "SELECT a AS v, (SELECT max(v) FROM u) AS w FROM t",
    ],
)
def test_a_name_that_is_no_alias_stays(sql: str) -> None:
    assert athena_query(lake_with(), sql, "tile").columns


@pytest.mark.parametrize("value", ["list(a)", "x::json", "{'a': 1}", "INTERVAL 1 DAY"])
def test_a_column_that_no_visual_shows_is_refused(value: str) -> None:
    with pytest.raises(BoardError, match="QuickSight cannot show"):
        _query(value)

"""QuickSight's dashboards: the tiles of the board files in Athena's SQL, as AWS's API takes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import botocore.session
import duckdb
import pytest
import sqlglot
from botocore.validate import ParamValidator

from stacks.analytics.athena_functions import functions_that_athena_lacks
from stacks.analytics.athena_sql import athena_query, lake_table
from stacks.analytics.quicksight import read_boards
from stacks.synthesized import rendered
from tests.stacks.conftest import Synthesized
from tests.stacks.iam_statements import statements
from tests.stacks.lakes import ACCOUNT
from tests.stacks.one_stack import lake_with
from tributary.contract.boards.board import BoardError, read_board
from tributary.contract.lake import read_lake
from tributary.contract.table_name import TableName
from tributary.tickit.generator import generate
from tributary.tickit.schema import TABLES

ROOT = Path(__file__).parents[2]
BOARD = ROOT / "boards" / "tickit.toml"
ANALYST = f"arn:aws:quicksight:us-east-1:{ACCOUNT}:user/default/analyst"
VISUALS = {
    "number": "KPIVisual",
    "bar": "BarChartVisual",
    "pie": "PieChartVisual",
    "line": "LineChartVisual",
    "scatter": "ScatterPlotVisual",
    "table": "TableVisual",
}


@pytest.fixture
def resources(synthesized: Synthesized) -> list[Mapping[str, Any]]:
    return list(synthesized("quicksight").templates["Analytics"]["Resources"].values())


def _of(resources: list[Mapping[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each["Properties"] for each in resources if each["Type"] == f"AWS::QuickSight::{kind}"]


def _visuals(resources: list[Mapping[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    (dashboard,) = _of(resources, "Dashboard")
    (sheet,) = dashboard["Definition"]["Sheets"]
    return [next(iter(each.items())) for each in sheet["Visuals"]]


def test_each_tile_becomes_the_visual_of_its_kind_with_its_title(resources: list[Mapping[str, Any]]) -> None:
    tiles = read_board(BOARD).tiles
    assert [(kind, visual["Title"]["FormatText"]["PlainText"]) for kind, visual in _visuals(resources)] == [
        (VISUALS[tile.chart], tile.title) for tile in tiles
    ]
    assert {tile.chart for tile in tiles} == set(VISUALS)


@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        ("DataSource", "CreateDataSource"),
        ("DataSet", "CreateDataSet"),
        ("Dashboard", "CreateDashboard"),
    ],
)
def test_aws_s_own_description_of_the_api_accepts_every_property(
    resources: list[Mapping[str, Any]], kind: str, operation: str
) -> None:
    model = botocore.session.get_session().get_service_model("quicksight").operation_model(operation)
    found = _of(resources, kind)
    assert found
    for properties in found:
        assert model.input_shape is not None
        problems = ParamValidator().validate(_without_references(properties), model.input_shape)
        assert not problems.has_errors(), problems.generate_report()


def _without_references(value: Any) -> Any:
    match value:
        case {"Fn::GetAtt": _}:
            return "arn:aws:iam::111122223333:role/example"
        case {"Ref": _} | {"Fn::Join": _}:
            return re.sub(r"\{[^}]*\}", "111122223333", rendered(value))
        case dict():
            return {key: _without_references(below) for key, below in value.items()}
        case list():
            return [_without_references(below) for below in value]
    return value


def test_every_field_of_a_visual_is_a_column_of_its_own_data_set(resources: list[Mapping[str, Any]]) -> None:
    (dashboard,) = _of(resources, "Dashboard")
    definition = dashboard["Definition"]
    named = {(each["DataSetIdentifier"], each["Name"]) for each in definition["CalculatedFields"]}
    used = {
        (column["DataSetIdentifier"], column["ColumnName"])
        for _, visual in _visuals(resources)
        for column in _columns(visual)
    }
    assert used
    assert used <= named
    identifiers = {each["Identifier"] for each in definition["DataSetIdentifierDeclarations"]}
    assert {data for data, _ in used} == identifiers
    for each, data_set in zip(
        sorted(identifiers, key=lambda name: int(name.rpartition("-")[2])),
        _of(resources, "DataSet"),
        strict=True,
    ):
        (table,) = data_set["PhysicalTableMap"].values()
        columns = {f"{{{column['Name']}}}" for column in table["CustomSql"]["Columns"]}
        of_set = [field for field in definition["CalculatedFields"] if field["DataSetIdentifier"] == each]
        assert {field["Expression"] for field in of_set} == columns


def _columns(value: Any) -> list[dict[str, str]]:
    if isinstance(value, dict):
        if "DataSetIdentifier" in value:
            return [value]
        return [found for below in value.values() for found in _columns(below)]
    return [found for below in value for found in _columns(below)] if isinstance(value, list) else []


def test_visuals_stand_side_by_side_as_on_the_console_and_never_overlap(
    resources: list[Mapping[str, Any]],
) -> None:
    (dashboard,) = _of(resources, "Dashboard")
    (layout,) = dashboard["Definition"]["Sheets"][0]["Layouts"]
    taken: set[tuple[int, int]] = set()
    for element in layout["Configuration"]["GridLayout"]["Elements"]:
        cells = {
            (row, column)
            for row in range(element["RowIndex"], element["RowIndex"] + element["RowSpan"])
            for column in range(element["ColumnIndex"], element["ColumnIndex"] + element["ColumnSpan"])
        }
        assert not cells & taken
        assert max(column for _, column in cells) < 36
        taken |= cells


def test_the_order_of_the_sql_is_the_order_of_the_chart(resources: list[Mapping[str, Any]]) -> None:
    titled = {visual["Title"]["FormatText"]["PlainText"]: visual for _, visual in _visuals(resources)}

    def sort(title: str) -> tuple[str, str]:
        configuration = titled[title]["ChartConfiguration"]
        (by,) = configuration["SortConfiguration"]["CategorySort"]
        column = next(
            field["Column"]["ColumnName"]
            for field in _fields(configuration["FieldWells"])
            if field["FieldId"] == by["FieldSort"]["FieldId"]
        )
        return column, by["FieldSort"]["Direction"]

    assert sort("Revenue by month and group of events") == ("month", "ASC")
    assert sort("Revenue by category") == ("revenue", "DESC")
    assert sort("Tickets sold by week") == ("week", "ASC")


def _fields(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        if "FieldId" in value:
            return [value]
        return [found for below in value.values() for found in _fields(below)]
    return [found for below in value for found in _fields(below)] if isinstance(value, list) else []


def test_the_principal_may_look_and_change_nothing(resources: list[Mapping[str, Any]]) -> None:
    granted = [
        (grant["Principal"], action)
        for kind in ("DataSource", "DataSet", "Dashboard")
        for properties in _of(resources, kind)
        for grant in properties["Permissions"]
        for action in grant["Actions"]
    ]
    assert {principal for principal, _ in granted} == {ANALYST}
    assert not [action for _, action in granted if re.search("Update|Delete|Create|Put|Cancel", action)]


def test_athena_acts_for_a_role_that_reads_silver_in_the_lake_s_own_workgroup(
    synthesized: Synthesized, resources: list[Mapping[str, Any]]
) -> None:
    (source,) = _of(resources, "DataSource")
    athena = source["DataSourceParameters"]["AthenaParameters"]
    assert athena["WorkGroup"] == "tributary-shop"
    assert rendered(athena["RoleArn"]).startswith("{QuickSightRole")
    rights = [
        each
        for each in statements({"Analytics": synthesized("quicksight").templates["Analytics"]})
        if each.kind == "AWS::IAM::ManagedPolicy"
    ]
    changing = re.compile(r"(s3:(Put|Delete)|glue:(Create|Update|Delete|Batch(Create|Delete)))")
    changed = {
        resource for each in rights if any(map(changing.match, each.actions)) for resource in each.resources
    }
    assert changed == {"arn:{AWS::Partition}:s3:::shop-artifacts-{AWS::AccountId}-us-east-1/athena-results/*"}


@pytest.mark.parametrize("board", ["boards", "examples/northwind/boards", "examples/sales/boards"])
def test_every_board_of_the_project_can_be_shown_and_its_sql_is_athena_s(board: str) -> None:
    lake_file = ROOT / board / ".." / "lake.toml"
    for shown in read_boards(read_lake(lake_file), ROOT / board):
        for tile in shown.tiles:
            parsed = sqlglot.parse_one(tile.query.typed(tile.columns), dialect="athena")
            assert isinstance(parsed, sqlglot.exp.Query)
            assert len(parsed.named_selects) == len(tile.columns)
            assert "GROUP BY ALL" not in parsed.sql("athena")
            assert "ORDER BY ALL" not in parsed.sql("athena")


def test_the_demo_s_tiles_have_the_same_answers_after_their_translation() -> None:
    """DuckDB reads the SQL that sqlglot translates from Athena's, so it can compare both."""
    lake, generated = read_lake(ROOT / "lake.toml"), generate(0.001)
    with duckdb.connect() as database:
        for table in TABLES:
            ddl = re.sub(r" REFERENCES \w+( ON UPDATE CASCADE)?", "", table.ddl).replace("jsonb", "varchar")
            database.execute(ddl)
            rows = list(map(list, generated[table.name]))
            database.executemany(
                f"INSERT INTO {table.name} ({', '.join(table.columns)})"
                f" VALUES ({', '.join('?' * len(table.columns))})",
                rows,
            )
        database.execute(f"CREATE SCHEMA {lake.names.glue_database}")
        for table in TABLES:
            name = lake.names.glue_table(TableName("shop", "public", table.name))
            database.execute(f"CREATE VIEW {lake.names.glue_database}.{name} AS FROM main.{table.name}")
        for shown in read_boards(lake, ROOT / "boards"):
            for tile in shown.tiles:
                columns = ", ".join(f'"{name}"' for name in tile.columns)
                expected = database.sql(f"SELECT {columns} FROM ({tile.tile.sql})").fetchall()
                translated = sqlglot.transpile(tile.query.typed(tile.columns), "athena", "duckdb")[0]
                found = database.sql(translated).fetchall()
                assert expected
                assert sorted(map(_comparable, found)) == sorted(map(_comparable, expected))


def _comparable(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(_text(value) for value in row)


def _text(value: Any) -> str:
    try:
        return f"{float(value):.6f}"
    except (TypeError, ValueError):
        return str(value)[:10]


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT regexp_matches(name, 'a') AS a, no_such_function(1) AS b FROM sales", "no_such_function"),
        ("SELECT median(price) AS a FROM sales", "lacks a function.*PERCENTILE_CONT"),
        ("SELECT monthname(day) AS a, mode(price) AS b FROM sales", "lacks a function.*MODE, MONTHNAME"),
        ("SELECT * FROM sales", "needs the name of each column"),
        ("SELECT 1 AS a FROM nowhere.sales", "no such table"),
        ("SELECT a FROM read_csv('x.csv')", "only tables of the lake|cannot be translated"),
        ("SELECT 1 AS a; SELECT 2 AS b", "exactly one statement"),
    ],
)
def test_a_tile_that_athena_cannot_answer_is_refused_with_its_place(sql: str, what: str) -> None:
    with pytest.raises(BoardError, match=what) as caught:
        athena_query(lake_with(), sql, "b.toml, tile 1 (T)")
    assert str(caught.value.where).startswith("b.toml, tile 1 (T)")


def test_common_functions_are_translated_to_those_of_athena() -> None:
    sql = """
        WITH days AS (SELECT date_trunc('day', at) AS day, price, name FROM sales WHERE id IN (1, 2))
        SELECT strftime(day, '%Y') AS a, approx_quantile(price, 0.5) AS b, arg_max(name, price) AS c,
            string_agg(name, ', ') AS d, date_diff('day', min(day), max(day)) AS e, count(DISTINCT name) AS f,
            sum(price) FILTER (name LIKE 'a%') AS g, coalesce(nullif(name, ''), 'none') AS h,
            row_number() OVER (PARTITION BY day ORDER BY price) AS i, price::decimal(10, 2) AS j
        FROM days GROUP BY ALL HAVING (count(*) > 1) AND NOT (day IS NULL)
    """
    query = athena_query(lake_with(), sql, "tile")
    translated = query.typed({column.name: column.type for column in query.columns})
    assert functions_that_athena_lacks(translated) == ()
    assert functions_that_athena_lacks(f"SELECT max(made_up(1)) FROM ({translated})") == ("MADE_UP",)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a, sum(b) AS s FROM t GROUP BY ALL", "GROUP BY 1"),
        ("SELECT sum(b) AS s FROM t GROUP BY ALL", "SELECT SUM(b) AS s FROM"),
        ("SELECT a, b FROM t ORDER BY ALL DESC", "ORDER BY 1 DESC, 2 DESC"),
        ("SELECT strftime(d, '%Y') AS year, count(*) AS n FROM t GROUP BY year", "GROUP BY 1"),
        ("SELECT upper(d) AS d, count(*) AS n FROM t GROUP BY d", "GROUP BY d"),
        (
            "SELECT a, sum(count(*)) OVER (ORDER BY a) AS n FROM t GROUP BY ALL",
            "GROUP BY 1",
        ),
    ],
)
def test_what_only_duckdb_has_is_spelled_out(sql: str, expected: str) -> None:
    query = athena_query(lake_with(), sql, "tile")
    written = query.typed({column.name: column.type for column in query.columns})
    assert expected in re.sub(r" NULLS (FIRST|LAST)", "", written)
    assert "ALL" not in written


@pytest.mark.parametrize(
    ("parts", "table"),
    [
        (("orders",), "web.public.orders"),
        (("public", "orders"), "web.public.orders"),
        (("web", "public", "orders"), "web.public.orders"),
        (("billing", "ledger", "invoices"), "billing.ledger.invoices"),
    ],
)
def test_a_name_of_one_to_three_parts_finds_its_table(parts: tuple[str, ...], table: str) -> None:
    assert str(lake_table(_two_sources(), parts, "tile")) == table


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        (("invoices",), "fits several tables"),
        (("other", "orders"), "no such table"),
        (("a", "b", "c"), "no such"),
    ],
)
def test_an_unclear_name_is_refused(parts: tuple[str, ...], what: str) -> None:
    with pytest.raises(BoardError, match=what):
        lake_table(_two_sources(), parts, "tile")


def _two_sources() -> Any:
    more = '[source.billing]\nengine = "postgres"\ndatabase = "b"\ntables = ["ledger.invoices"]\n'
    return lake_with(more=f'[table."web.public.orders"]\n{more}').model_copy()


def _board(folder: Path, tile: str) -> Path:
    (folder / "b.toml").write_text(f'title = "B"\n[[tile]]\ntitle = "T"\n{tile}')
    return folder


@pytest.mark.parametrize(
    ("tile", "what", "where"),
    [
        (
            'chart = "number"\nvalue = "n"\nas_of = "2026-11-01"\nsql = "SELECT count(*) AS n FROM orders"',
            "as of an earlier time",
            "key as_of",
        ),
        (
            'chart = "pie"\nlabel = "l"\nvalue = "n"\nsql = "SELECT count(*) AS n FROM orders"',
            "no such column",
            "",
        ),
    ],
)
def test_a_tile_that_quicksight_cannot_show_is_refused(
    tile: str, what: str, where: str, tmp_path: Path
) -> None:
    with pytest.raises(BoardError, match=what) as caught:
        read_boards(lake_with(), _board(tmp_path, tile))
    assert "tile 1 (T)" in str(caught.value.where)
    assert where in str(caught.value.where)


def test_a_folder_without_boards_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match="no board files") as caught:
        read_boards(lake_with(), tmp_path)
    assert caught.value.where == "[aws.quicksight].boards"

"""A mistake in a board file is reported with its place, and an answer has to fit its chart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tributary.api.sql import Limits, query_arrow
from tributary.api.time_travel import OutOfHistory
from tributary.cli import main
from tributary.contract.boards.board import BarTile, BoardError, LineTile, parse_board, read_board
from tributary.contract.table_name import TableName
from tributary.operations.boards.answers import MOST_POINTS, Figure, Grid, Lines, Points, Slices, shown
from tributary.operations.boards.check import check_boards, check_statement
from tributary.tickit.generator import generate
from tributary.tickit.schema import TABLES

DEMO = Path(__file__).parents[2] / "boards" / "tickit.toml"
FILE = Path("boards/sales.toml")
ORDERS = TableName("shop", "public", "orders")

NUMBER = '[[tile]]\ntitle = "N"\nchart = "number"\nvalue = "n"\nsql = "SELECT count(*) AS n FROM orders"\n'


def test_a_board_has_its_title_its_interval_and_its_tiles() -> None:
    bar = (
        '[[tile]]\ntitle = "B"\nchart = "bar"\nx = "day"\ny = ["a", "b"]\nstacked = true\nsql = "SELECT 1"\n'
    )
    board = parse_board(f'title = "Sales"\nrefresh = "1m"\n{NUMBER}{bar}', FILE)
    assert (board.name, board.title, board.refresh) == ("sales", "Sales", timedelta(minutes=1))
    assert [tile.width for tile in board.tiles] == [3, 6]
    assert board.tiles[1] == BarTile(
        chart="bar", title="B", sql="SELECT 1", x="day", y=("a", "b"), stacked=True
    )


@pytest.mark.parametrize(
    ("text", "place", "found", "remedy"),
    [
        ('title = "a"', "sales.toml, key tile", "nothing", "Add tile"),
        ("title = ", "sales.toml", "Invalid value", "Mend the line"),
        (f'titel = "a"\n{NUMBER}', "key titel", "titel", "Did you mean title?"),
        (f'title = "a"\nrefresh = "1s"\n{NUMBER}', "key refresh", "'1s'", "Change refresh"),
        (f'title = " "\n{NUMBER}', "key title", "' '", "Change title"),
        (f'title = "a"\n{NUMBER}widht = 3\n', "tile 1 (N), key widht", "widht", "Did you mean width?"),
        (f'title = "a"\n{NUMBER}width = 13\n', "tile 1 (N), key width", "13", "Change width"),
        (f'title = "a"\n{NUMBER}{NUMBER}x = "a"\n', "tile 2 (N), key x", "x", "Remove x"),
        (f'title = "a"\n{NUMBER.replace("number", "lime")}', "tile 1 (N), key chart", "lime", "mean line?"),
        (
            f'title = "a"\n{NUMBER.replace("value", "# value")}',
            "tile 1 (N), key value",
            "nothing",
            "Add value",
        ),
        ('title = "a"\n[[tile]]\ntitle = "N"\nsql = "x"\n', "tile 1 (N), key chart", "nothing", "Add chart"),
        (f'title = "a"\nview = 3\n{NUMBER}', "key view", "3", "Change view"),
        (f'title = "a"\n[view]\nSold = "a.sql"\n{NUMBER}', "key view.Sold", "'Sold'", "Change view.Sold"),
        (f'title = "a"\n[view]\nsold = "a.txt"\n{NUMBER}', "key view.sold", "'a.txt'", "Change view.sold"),
        (f'title = "a"\n[view]\nsold = "a.sql"\n{NUMBER}', "key view.sold", "[Errno 2]", "Correct the path"),
        ('title = "a"\ntile = 3\n', "key tile", "3", "Change tile"),
        ('title = "a"\ntile = [3]\n', "tile 1", "3", "Change"),
    ],
)
def test_a_mistake_is_told_by_file_tile_key_and_remedy(
    text: str, place: str, found: str, remedy: str
) -> None:
    with pytest.raises(BoardError) as caught:
        parse_board(text, FILE)
    told = str(caught.value)
    assert told.startswith("boards/sales.toml")
    assert place in told
    assert f"found {found}" in told
    assert remedy in told


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT 1; SELECT 2", "select and select"),
        ("DROP TABLE orders", "drop"),
        ("COPY orders TO 'x'", "copy"),
        ("ATTACH 'x'", "attach"),
        ("", "no statement"),
    ],
)
def test_only_one_statement_that_reads_is_taken(sql: str, found: str) -> None:
    with pytest.raises(BoardError, match=r"b\.toml, tile 1, key sql.*" + found):
        check_statement(sql, "b.toml, tile 1")


def test_statements_that_read_are_taken() -> None:
    for sql in (
        "FROM orders",
        "WITH a AS (SELECT 1) SELECT * FROM a;",
        "PIVOT orders ON x IN (1)",
        "VALUES (1)",
    ):
        check_statement(sql, "b.toml, tile 1")


def _shown(keys: str, answer: Mapping[str, list[Any]]) -> Any:
    board = parse_board(f'title = "a"\n[[tile]]\ntitle = "T"\nsql = "SELECT 1"\n{keys}', FILE)
    return shown(board.tiles[0], pa.table(dict(answer)), "T")


def test_each_kind_shows_the_answer_s_values() -> None:
    day, rows = [date(1970, 1, 2), None], [Decimal("1.5"), None]
    lines = _shown('chart = "line"\nx = "d"\ny = "n"\n', {"d": day, "n": rows})
    assert (lines.axis, lines.x, lines.series[0].values) == ("time", (86_400_000.0, None), (1.5, None))
    bars = _shown('chart = "bar"\nx = "d"\ny = ["n"]\n', {"d": day, "n": rows})
    assert (bars.axis, bars.x) == ("category", ("1970-01-02", "∅"))
    assert _shown('chart = "line"\nx = "n"\ny = "n"\n', {"n": rows}).axis == "value"
    pie = _shown('chart = "pie"\nlabel = "d"\nvalue = "n"\n', {"d": ["x", "y"], "n": rows})
    assert pie.slices == (("x", 1.5), ("y", None))
    points = _shown('chart = "scatter"\nx = "a"\ny = "b"\nsize = "c"\n', {"a": [1], "b": [2], "c": [3]})
    assert points.points == ((1, 2, 3, ""),)
    assert _shown('chart = "number"\nvalue = "n"\n', {"n": [7]}) == Figure(7, "")
    assert _shown('chart = "table"\n', {"n": [7]}) == Grid(pa.table({"n": [7]}))


def test_a_number_without_a_value_in_json_is_a_gap() -> None:
    lines = _shown('chart = "line"\nx = "x"\ny = "y"\n', {"x": ["a", "b"], "y": [float("nan"), float("inf")]})
    assert lines.series[0].values == (None, None)


def test_a_chart_has_only_the_first_rows_and_knows_of_the_others() -> None:
    many = list(range(MOST_POINTS + 5))
    lines = _shown('chart = "line"\nx = "x"\ny = "x"\n', {"x": many})
    assert (len(lines.x), lines.rows) == (MOST_POINTS, MOST_POINTS + 5)


@pytest.mark.parametrize(
    ("keys", "answer", "told"),
    [
        (
            'chart = "bar"\nx = "a"\ny = "c"\n',
            {"a": [1], "b": [2]},
            "key y: .* found c, expected one of a, b",
        ),
        (
            'chart = "bar"\nx = "a"\ny = "b"\n',
            {"a": [1], "b": ["2"]},
            "needs numbers: found string in column b",
        ),
        ('chart = "bar"\nx = "a"\ny = "b"\n', {"a": [1], "b": [True]}, "needs numbers: found bool"),
        ('chart = "pie"\nlabel = "a"\nvalue = "b"\n', {"a": ["x"], "b": [-1]}, "negative"),
        ('chart = "number"\nvalue = "a"\n', {"a": [1, 2]}, "found 2 rows, expected one row"),
        ('chart = "number"\nvalue = "a"\n', {"a": []}, "found 0 rows"),
    ],
)
def test_an_answer_that_does_not_fit_names_key_and_remedy(
    keys: str, answer: Mapping[str, list[Any]], told: str
) -> None:
    with pytest.raises(BoardError, match=told) as caught:
        _shown(keys, answer)
    assert caught.value.remedies


def test_every_file_is_checked_and_each_problem_names_its_tile(tmp_path: Path) -> None:
    good, bad, broken = (tmp_path / f"{name}.toml" for name in ("a", "b", "c"))
    good.write_text(f'title = "Good"\n{NUMBER}')
    bad.write_text(
        f'title = "Bad"\n{NUMBER}{NUMBER.replace("orders", "ordrs")}{NUMBER.replace("AS n", "AS m")}'
    )
    broken.write_text("title = 3\n")

    def ask(sql: str, _: str | None) -> pa.Table:
        return query_arrow({ORDERS: pa.table({"id": [1, 2]})}, sql, Limits(seconds=10, memory="100MB"))

    checked = list(check_boards([good, bad, broken], ask))
    assert [len(one.problems) for one in checked] == [0, 2, 1]
    assert "b.toml, tile 2 (N)" in str(checked[1].problems[0])
    assert "b.toml, tile 3 (N), key value" in str(checked[1].problems[1])
    assert [len(one.problems) for one in check_boards([good, bad])] == [0, 0]


def test_a_tile_names_a_view_like_a_table(tmp_path: Path) -> None:
    tmp_path.joinpath("sold.sql").write_text("SELECT id, 2 * id AS paid FROM orders -- a comment")
    tmp_path.joinpath("dear.sql").write_text("WITH many AS (FROM sold) SELECT * FROM many WHERE paid > 2;")
    tmp_path.joinpath("unused.sql").write_text("SELECT * FROM nowhere")
    views = '[view]\nsold = "sold.sql"\ndear = "dear.sql"\nunused = "unused.sql"\n'
    sql = "WITH d AS (FROM Dear) SELECT paid FROM d ORDER BY paid DESC;"
    tile = f'[[tile]]\ntitle = "T"\nchart = "table"\nsql = "{sql}"\n'
    path = tmp_path / "b.toml"
    path.write_text(f'title = "a"\n{views}{tile}{NUMBER}')
    board = read_board(path)
    orders = {ORDERS: pa.table({"id": [1, 3, 2]})}
    found = [query_arrow(orders, tile.sql, Limits(10, "100MB")).to_pylist() for tile in board.tiles]
    assert found == [[{"paid": 6}, {"paid": 4}], [{"n": 3}]]
    assert board.tiles[1].sql == "SELECT count(*) AS n FROM orders"
    assert "nowhere" not in board.tiles[0].sql


def test_a_view_that_writes_is_told_by_its_own_file(tmp_path: Path) -> None:
    tmp_path.joinpath("sold.sql").write_text("DROP TABLE orders")
    path = tmp_path / "b.toml"
    path.write_text(f'title = "a"\n[view]\nsold = "sold.sql"\n{NUMBER.replace("orders", "sold")}')
    (checked,) = check_boards([path])
    assert len(checked.problems) == 1
    assert "sold.sql, view sold" in str(checked.problems[0])
    assert "found drop" in str(checked.problems[0])


def test_a_moment_that_is_none_is_found_without_the_lake_and_says_which_key_to_change(tmp_path: Path) -> None:
    file = tmp_path / "b.toml"
    file.write_text(f'title = "B"\n{NUMBER}as_of = "last week"\n')
    (checked,) = check_boards([file])
    (problem,) = checked.problems
    assert problem.where == f"{file}, tile 1 (N), key as_of"
    assert problem.found == "last week"
    assert "Change as_of in the file." in str(problem)


def test_a_moment_before_the_first_commit_says_which_key_to_change(tmp_path: Path) -> None:
    file = tmp_path / "b.toml"
    file.write_text(f'title = "B"\n{NUMBER}as_of = "2001-01-01"\n')

    def ask(_: str, as_of: str | None) -> pa.Table:
        raise OutOfHistory("The table had no commit yet", where="shop.public.orders", found=as_of)

    (checked,) = check_boards([file], ask)
    (problem,) = checked.problems
    assert str(problem.where) == f"{file}, tile 1 (N), key as_of: shop.public.orders"
    assert "Change as_of in the file." in str(problem)


def test_the_command_tells_each_mistake_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "boards"
    folder.mkdir()
    lake = str(tmp_path / "lake.toml")
    assert main.run(["boards", "check", "--lake", lake]) == 0
    assert "There are no boards" in capsys.readouterr().out
    folder.joinpath("a.toml").write_text(f'title = "Good"\n{NUMBER}')
    assert main.run(["boards", "check", "--lake", lake]) == 0
    assert "Good: 1 tile, well" in capsys.readouterr().out
    folder.joinpath("b.toml").write_text(f'title = "Bad"\n{NUMBER.replace("SELECT", "SELEC")}')
    assert main.run(["boards", "check", "--lake", lake]) == 1
    assert "b.toml, tile 1 (N), key sql" in capsys.readouterr().err


def test_the_demo_s_board_shows_what_the_generated_rows_say() -> None:
    rows = generate(0.01)
    tables = {
        TableName("shop", "public", table.name): pa.table(
            dict(zip(table.columns, map(list, zip(*rows[table.name], strict=True)), strict=True))
        )
        for table in TABLES
    }
    board = read_board(DEMO)
    found = {
        tile.title: shown(tile, query_arrow(tables, tile.sql, Limits(30, "1GB")), tile.title)
        for tile in board.tiles
    }
    columns = {table.name: {name: at for at, name in enumerate(table.columns)} for table in TABLES}
    sales, of = rows["sales"], columns["sales"]
    paid, sold = of["pricepaid"], of["qtysold"]
    assert found["Revenue"] == Figure(sum(sale[paid] for sale in sales), "$")
    assert found["Tickets sold"] == Figure(sum(sale[sold] for sale in sales), "")

    category_of = {event[0]: event[columns["event"]["catid"]] for event in rows["event"]}
    category = {row[0]: row for row in rows["category"]}
    by_category: dict[str, Decimal] = defaultdict(Decimal)
    by_month: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    day = {row[0]: row[1] for row in rows["date"]}
    for sale in sales:
        _, group, name, _ = category[category_of[sale[of["eventid"]]]]
        by_category[name] += sale[paid]
        by_month[f"{day[sale[of['dateid']]]:%Y-%m}", group] += sale[paid]
    pie = found["Revenue by category"]
    assert isinstance(pie, Slices)
    assert dict(pie.slices) == pytest.approx({name: float(value) for name, value in by_category.items()})
    bars = found["Revenue by month and group of events"]
    assert isinstance(bars, Lines)
    assert {
        (month, series.name): value
        for series in bars.series
        for month, value in zip(bars.x, series.values, strict=True)
        if value is not None
    } == pytest.approx({key: float(value) for key, value in by_month.items()})
    bubbles = found["Buyers: tickets and mean price, by revenue"]
    assert isinstance(bubbles, Points)
    sizes = [size or 0 for _, _, size, _ in bubbles.points]
    assert sizes == sorted(sizes, reverse=True)
    assert any(isinstance(tile, LineTile) for tile in board.tiles)

"""Charts hold the lake's values as data only, and a tile is asked once for all pages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tributary.api.sql import query_arrow
from tributary.console.board_answers import BoardAnswers
from tributary.console.charts import chart_options
from tributary.console.colors import QUIET_COLOR
from tributary.console.pages.ask import column_width
from tributary.console.pages.boards import board_path, figure_text, file_name
from tributary.contract.boards.board import BoardError, parse_board
from tributary.operations.boards.answers import Figure, Lines, Points, Slices, shown

HOSTILE = ":<script>{b}"
KEYS = {
    "bar": f'x = "{HOSTILE}"\ny = ["n"]\nstacked = true',
    "line": 'x = "n"\ny = ["n", "m"]',
    "pie": f'label = "{HOSTILE}"\nvalue = "n"',
    "scatter": f'x = "n"\ny = "m"\nsize = "m"\nlabel = "{HOSTILE}"',
}
ANSWER = pa.table({HOSTILE: [HOSTILE, "b"], "n": [1, 2], "m": [4, 1]})


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    match value:
        case dict():
            for key, inner in value.items():
                yield key, inner
                yield from _entries(inner)
        case list():
            for inner in value:
                yield from _entries(inner)


@pytest.mark.parametrize("chart", KEYS)
def test_no_value_of_the_lake_becomes_a_key_or_html(chart: str) -> None:
    board = f'title = "a"\n[[tile]]\ntitle = "T"\nchart = "{chart}"\nsql = "SELECT 1"\n{KEYS[chart]}\n'
    tile = parse_board(board, Path("b.toml")).tiles[0]
    what = shown(tile, ANSWER, "T")
    assert isinstance(what, Lines | Slices | Points)
    options = chart_options(tile, what)
    keys = {key for key, _ in _entries(options)}
    assert HOSTILE not in keys
    assert {(key, code) for key, code in _entries(options) if key.startswith(":")} == {
        (":color", QUIET_COLOR)
    }
    # A share in percent is a number. Any other pattern could show a value of the lake as it is.
    assert {value for key, value in _entries(options) if key == "formatter"} <= {"{d} %"}
    assert options["tooltip"]["renderMode"] == "richText"
    assert json.loads(json.dumps(options)) == options
    if chart == "scatter":
        first, second = (point["symbolSize"] for point in options["series"][0]["data"])
        assert (first / second) ** 2 == pytest.approx(4)


def test_twenty_pages_share_one_answer(tmp_path: Path) -> None:
    tmp_path.joinpath("boards").mkdir()
    text = 'title = "a"\n[[tile]]\ntitle = "T"\nchart = "number"\nvalue = "n"\nsql = "SELECT 1 AS n"\n'
    tmp_path.joinpath("boards", "b.toml").write_text(text)
    asked: list[str] = []

    def ask(sql: str, _: str | None) -> pa.Table:
        asked.append(sql)
        return query_arrow({}, sql)

    boards = BoardAnswers(tmp_path / "lake.toml", ask)

    async def look() -> list[Any]:
        return list(await asyncio.gather(*(look_once(boards) for _ in range(20))))

    assert asyncio.run(look()) == [Figure(1, "")] * 20
    assert asked == ["SELECT 1 AS n"]


async def look_once(boards: BoardAnswers) -> Any:
    return await boards.shown(boards.read("b"), 0)


def test_a_changed_tile_is_asked_again_before_its_interval_ends(tmp_path: Path) -> None:
    tmp_path.joinpath("boards").mkdir()
    file = tmp_path / "boards" / "b.toml"
    tile = '[[tile]]\ntitle = "T"\nchart = "number"\nvalue = "n"\nsql = "SELECT 1 AS n"\n'
    text = f'title = "a"\nrefresh = "1h"\n{tile}'
    boards = BoardAnswers(tmp_path / "lake.toml", lambda sql, _: query_arrow({}, sql))

    async def look() -> list[Any]:
        found = []
        for number in (1, 2):
            file.write_text(text.replace("SELECT 1", f"SELECT {number}"))
            found.append(await look_once(boards))
        return found

    assert asyncio.run(look()) == [Figure(1, ""), Figure(2, "")]


def test_a_board_is_found_by_name_only_and_a_broken_file_does_not_hide_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "boards"
    folder.mkdir()
    (tmp_path / "secret.toml").write_text('title = "secret"')
    (folder / "bad.toml").write_text("title = 1\n")
    (folder / "good.toml").write_text(
        'title = "G"\n[[tile]]\ntitle = "T"\nchart = "table"\nsql = "SELECT 1"\n'
    )
    boards = BoardAnswers(tmp_path / "lake.toml", lambda sql, _: query_arrow({}, sql))
    bad, good = boards.read_all()
    assert isinstance(bad, BoardError)
    assert not isinstance(good, BoardError)
    assert good.title == "G"
    with pytest.raises(BoardError, match="expected one of bad, good"):
        boards.read("../secret")


def test_texts_of_boards() -> None:
    assert board_path("a/b") == "/board/a%2Fb"
    assert file_name('Revenue: "top" <b>', "png") == "revenue-top-b.png"
    assert (figure_text(None), figure_text(12345), figure_text(1.0), figure_text("x")) == (
        "–",
        "12,345",
        "1.00",
        "x",
    )


def _bars(*names: str) -> dict[str, Any]:
    sql = 'title = "a"\n[[tile]]\ntitle = "T"\nchart = "bar"\nx = "x"\ny = "y"\nsql = "SELECT 1"\n'
    tile = parse_board(sql, Path("b.toml")).tiles[0]
    what = shown(tile, pa.table({"x": names, "y": range(len(names))}), "T")
    assert isinstance(what, Lines)
    label: dict[str, Any] = chart_options(tile, what)["xAxis"]["axisLabel"]
    return label


def test_each_of_a_few_bars_has_its_name_and_many_bars_only_those_that_fit() -> None:
    assert _bars("Ink", "Paper")["interval"] == 0
    assert "rotate" not in _bars("Ink", "Paper")
    eight = _bars(
        "France", "Canada", "India", "Italy", "South Korea", "Chile", "Spain", "Ghana", "New Zealand"
    )
    assert (eight["interval"], eight["rotate"]) == (0, 35)
    assert "interval" not in _bars(*(f"day {number}" for number in range(60)))


def test_a_column_is_as_wide_as_its_times_but_not_as_a_long_text() -> None:
    assert column_width("n", [1, None]) == column_width("n", []) == 110
    assert 240 > column_width("at (UTC)", ["2026-03-02 13:05:11+00:00"]) > 200
    assert column_width("text", ["x" * 5000]) == 320
    assert column_width("a quite long title of it", [1]) > 200

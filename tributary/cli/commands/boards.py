"""The command about boards: `boards check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import messages, output
from tributary.operations.remedy_words import remedy_words
from tributary.operations.workspace import Workspace

boards = typer.Typer(no_args_is_help=True, help="Boards: files of SQL and charts that the console shows.")


@boards.callback()
def _boards() -> None:
    """Let `check` stay a command of its own, although it is the only one."""


@boards.command()
def check(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Board files. Default: boards/*.toml beside the lake file."),
    ] = None,
    run: Annotated[
        bool,
        typer.Option("--run", help="Also ask the running lake, and compare answers with charts."),
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
) -> None:
    """Check board files: their keys, and that each tile's SQL is one statement that reads.

    With --run, also run each statement on the lake. This finds missing tables and columns. Neither way
    needs the console.

    Example: tributary boards check --run
    """
    from tributary.console.console import QUERY_LIMITS
    from tributary.contract.boards.board import FOLDER, board_files
    from tributary.operations.boards.check import check_boards

    ask = None
    if run:
        open_lake = Workspace.open(lake, state).open_lake
        ask = lambda sql, as_of: open_lake.sql(sql, as_of, QUERY_LIMITS)  # noqa: E731
    paths = tuple(files) if files else board_files(lake)
    if not paths:
        output.print(f"There are no boards in {lake.parent / FOLDER}.", markup=False, highlight=False)
        return
    has_problem = False
    for checked in check_boards(paths, ask):
        for problem in checked.problems:
            has_problem = True
            text = problem.text(remedy_words)
            messages.print(text, style="red", markup=False, highlight=False, soft_wrap=True)
        if checked.board is not None and not checked.problems:
            tiles = len(checked.board.tiles)
            text = f"{checked.path}: {checked.board.title}: {tiles} {'tile' if tiles == 1 else 'tiles'}, well"
            output.print(text, markup=False, highlight=False, soft_wrap=True)
    if has_problem:
        raise typer.Exit(1)

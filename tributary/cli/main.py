"""The entry point of `tributary`: its commands, and how each of them ends."""

from __future__ import annotations

import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from tributary.cli.commands.alerts import alerts
from tributary.cli.commands.boards import boards
from tributary.cli.commands.console import console
from tributary.cli.commands.demo import demo, demo_dynamodb, demo_engines, demo_sql
from tributary.cli.commands.derive import derive, lineage
from tributary.cli.commands.export import export
from tributary.cli.commands.forgetting import erase, maintain
from tributary.cli.commands.ingest import ingest
from tributary.cli.commands.init import init
from tributary.cli.commands.link_check import link_check
from tributary.cli.commands.orphans import orphans
from tributary.cli.commands.packages import package, plugins
from tributary.cli.commands.pause import pause, resume
from tributary.cli.commands.quarantine import quarantine
from tributary.cli.commands.reading import events, history, query, tables
from tributary.cli.commands.rebuild import new_epoch, rebuild
from tributary.cli.commands.reconcile import reconcile
from tributary.cli.commands.services import down, status, up
from tributary.cli.commands.snapshot import snapshot
from tributary.cli.commands.sql_server import sql_server
from tributary.cli.commands.start import start
from tributary.cli.commands.submit import submit
from tributary.cli.commands.superset import superset
from tributary.cli.commands.verify import verify
from tributary.cli.rendering import messages
from tributary.contract.errors import TributaryError
from tributary.contract.process_signals import handled
from tributary.operations.remedy_words import remedy_words

FAILURE = 1
INTERRUPTED = 128 + signal.SIGINT

app = typer.Typer(
    name="tributary",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="The tables of an operational database as queryable, always-current lake tables.\n\n"
    "tributary demo shows the whole pipeline on this machine. For a database of your own, tributary init "
    "writes lake.toml, and tributary start shows its tables in the browser.",
    epilog="Exit status: 0 success, 1 failure or problems found, 2 wrong usage, 130 stopped by Ctrl-C.",
)


def _show_version(is_asked: bool) -> None:  # noqa: FBT001 - Typer passes it like this
    if is_asked:
        typer.echo(f"tributary {version('tributary')}")
        raise typer.Exit


@app.callback()
def _of_all_commands(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version, and exit."),
    ] = False,
) -> None:
    pass


app.command(rich_help_panel="Run the pipeline")(demo)
app.command("demo-engines", rich_help_panel="Run the pipeline")(demo_engines)
app.command("demo-dynamodb", rich_help_panel="Run the pipeline")(demo_dynamodb)
app.command("demo-sql", rich_help_panel="Run the pipeline")(demo_sql)
app.command(rich_help_panel="Run the pipeline")(init)
app.command(rich_help_panel="Run the pipeline")(start)
app.command(rich_help_panel="Run the pipeline")(up)
app.command(rich_help_panel="Run the pipeline")(down)
app.command(rich_help_panel="Run the pipeline")(status)
app.command(rich_help_panel="Run the pipeline")(ingest)
app.command(rich_help_panel="Run the pipeline")(derive)
app.command(rich_help_panel="Run the pipeline")(pause)
app.command(rich_help_panel="Run the pipeline")(resume)
app.command(rich_help_panel="Run the pipeline")(snapshot)
app.add_typer(orphans, name="orphans", rich_help_panel="Run the pipeline")
app.command(rich_help_panel="Run the pipeline")(rebuild)
app.command("new-epoch", rich_help_panel="Run the pipeline")(new_epoch)
app.command(rich_help_panel="Run the pipeline")(maintain)
app.command(rich_help_panel="Run the pipeline")(erase)
app.command(rich_help_panel="Look at the lake")(console)
app.command(rich_help_panel="Look at the lake")(sql_server)
app.command(rich_help_panel="Look at the lake")(superset)
app.add_typer(boards, name="boards", rich_help_panel="Look at the lake")
app.command(rich_help_panel="Look at the lake")(alerts)
app.command(rich_help_panel="Look at the lake")(query)
app.command(rich_help_panel="Look at the lake")(export)
app.command(rich_help_panel="Look at the lake")(tables)
app.command(rich_help_panel="Look at the lake")(lineage)
app.command(rich_help_panel="Look at the lake")(history)
app.command(rich_help_panel="Look at the lake")(events)
app.command(rich_help_panel="Look at the lake")(reconcile)
app.command(rich_help_panel="Look at the lake")(verify)
app.add_typer(quarantine, name="quarantine", rich_help_panel="Look at the lake")
app.add_typer(plugins, name="plugins", rich_help_panel="Build for AWS")
app.command(rich_help_panel="Build for AWS")(package)
app.command("link-check", rich_help_panel="Build for AWS")(link_check)
app.command(rich_help_panel="Run on AWS")(submit)


def main() -> NoReturn:
    """Run the command in the process's arguments, and exit with its status."""
    with orderly_end():
        sys.exit(run(sys.argv[1:]))


@contextmanager
def orderly_end() -> Iterator[None]:
    """Let SIGTERM, and SIGHUP of a terminal that is closed, end a command as orderly as Ctrl-C does."""
    # nohup lets a command ignore SIGHUP.
    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    with handled(numbers, _end):
        yield


def run(arguments: list[str]) -> int:
    """Run the command, print errors on standard error, and return the exit status."""
    try:
        app(arguments, prog_name="tributary")
    except SystemExit as end:
        # Typer has already printed what is wrong with the arguments. It turns Ctrl-C into this status.
        if end.code == INTERRUPTED:
            _say("Stopped.")
        return end.code if isinstance(end.code, int) else 0
    except TributaryError as error:
        _say(f"tributary: {error.text(remedy_words)}")
    except _Ended as ended:
        return 128 + ended.signal
    except Exception as error:  # noqa: BLE001  The last resort: no traceback on the terminal.
        report = _write_report()
        _say(f"tributary: An unexpected error: {type(error).__name__}: {error}. The details are in {report}.")
    return FAILURE


class _Ended(BaseException):
    """A signal that ends the command. As no `Exception`, it passes what handles errors."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise _Ended(number)


def _say(text: str) -> None:
    messages.print(text, style="red", markup=False, highlight=False, soft_wrap=True)


def _write_report() -> Path:
    """Write the traceback to a file that only its owner can read, because it may contain private data."""
    with tempfile.NamedTemporaryFile("w", prefix="tributary-", suffix=".log", delete=False) as file:
        file.write(traceback.format_exc())
    return Path(file.name)

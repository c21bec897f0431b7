"""The command `init`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import SecretStr

from tributary.cli.commands.options import DEFAULT_LAKE_FILE, AsJson, LakeFile
from tributary.cli.rendering import messages, output, print_json, print_table
from tributary.contract.errors import TributaryError
from tributary.operations.remedy_words import remedy_words

if TYPE_CHECKING:
    from tributary.operations.first_look.database_url import DatabaseUrl
    from tributary.operations.first_look.lake_text import FirstLook

_MOST_SHOWN = 60


class FileExists(TributaryError):
    """There is a lake file already, or it cannot be written."""


def init(
    connection: Annotated[
        str,
        typer.Argument(
            metavar="CONNECTION",
            help="The database: postgresql://user@host/database, or with mysql://, mariadb:// or "
            "sqlserver://. The user prepares the database, so it is an administrator.",
        ),
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="The lake's name. Without it, after the database.")
    ] = None,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    as_json: AsJson = False,
) -> None:
    """Look at a database, and write a lake file for it.

    The command shows which tables the lake can take, and why it cannot take the others. It proposes keys for
    tables without a primary key, and buckets for large ones. Comments in the file propose to mask the
    columns that look personal. The command changes nothing in the database, and never overwrites a file.

    The password is not in the file, which names an environment variable instead. The command reads the
    password from that variable, or asks for it.

    Then tributary start shows the tables in the browser.
    """
    from connectors.engines.engine import Login, NotConnected
    from connectors.engines.registry import ENGINES
    from tributary.local.databases import DatabaseUnreachable
    from tributary.operations.first_look.database_url import parse_database_url
    from tributary.operations.first_look.lake_text import lake_text
    from tributary.operations.first_look.look import begin, lake_of, look_at

    if lake.exists():
        raise FileExists(
            "there is a lake file already, and it stays as it is",
            where=str(lake),
            remedy="Name another file with --lake, or remove this one.",
        )
    url = parse_database_url(connection)
    begun, engine = begin(url, name), ENGINES[url.engine]
    source = lake_of(begun).sources[0]
    login = Login(
        begun.address.host, begun.address.port or engine.port, begun.address.user, _password(url, begun)
    )
    try:
        session = engine.connect(source, login)
    except NotConnected as error:
        raise DatabaseUnreachable(
            "no connection to the database",
            where=f"{error.to} as {login.user}",
            found=error.found,
            remedy=f"Check {engine.connection_keys}.",
        ) from error
    with session, messages.status("looking at the database"):
        look = look_at(begun, session, remedy_words)
    _write(lake, lake_text(look))
    if as_json:
        print_json(_facts(look))
    else:
        _print(look, lake)


def _password(url: DatabaseUrl, begun: FirstLook) -> SecretStr:
    from tributary.local.databases import PasswordMissing

    variable = begun.password_variable
    if url.password is not None:
        messages.print(
            "The URL has a password, so the shell's history has it now, too. Next time, leave it out: the "
            f"command asks for it, or reads it from {variable}.",
            style="yellow",
        )
        return url.password
    if (found := os.environ.get(variable)) is not None:
        return SecretStr(found)
    if sys.stdin.isatty():
        return ask_for_password(begun.address.user, begun.address.host)
    raise PasswordMissing(
        f"the environment variable {variable} holds no password",
        found="no such variable",
        remedy=f"Set it: export {variable}=…",
    )


def ask_for_password(user: str, host: str) -> SecretStr:
    """Ask for a password on the terminal, without showing it."""
    prompt = f"Password of {user} at {host}"
    return SecretStr(typer.prompt(prompt, hide_input=True, default="", show_default=False, err=True))


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise FileExists("the lake file cannot be written", where=str(path), found=str(error)) from error


def _facts(look: FirstLook) -> dict[str, Any]:
    return {
        "lake": look.lake,
        "source": look.source,
        "password_variable": look.password_variable,
        "problems": look.problems,
        "remarks": look.remarks,
        "tables": [
            {
                "table": ".".join(table.name),
                "rows": table.facts.rows,
                "key": table.key or table.facts.primary_key,
                "taken": not table.problems,
                "problems": table.problems,
                "buckets": table.buckets,
                "personal": table.personal,
            }
            for table in look.tables
        ],
    }


def _print(look: FirstLook, lake: Path) -> None:
    shown = look.tables[:_MOST_SHOWN]
    rows = [
        (
            ".".join(table.name),
            "-" if table.facts.rows is None else f"{table.facts.rows:,}",
            ", ".join(table.key or table.facts.primary_key) or "-",
            "no" if table.problems else "yes",
            ", ".join(table.personal),
        )
        for table in shown
    ]
    print_table(("table", "about rows", "key", "taken", "looks personal"), rows, (False, True))
    if len(look.tables) > len(shown):
        output.print(f"… and {len(look.tables) - len(shown):,} more", highlight=False)
    for table in look.tables:
        if table.problems:
            _say(f"\n{'.'.join(table.name)} is left out: {' '.join(table.problems)}")
    for problem in look.problems:
        _say(f"\nTo do before the first start: {problem}", style="red")
    for remark in look.remarks:
        _say(f"\n{remark}", style="yellow")
    taken = f"{len(look.taken):,} of {len(look.tables):,} tables"
    _say(
        f"\nWrote {lake}: the lake {look.lake} takes {taken}. Read it, above all what its comments say.\n"
        f"Next: tributary start. It reads the password from {look.password_variable}, or asks for it."
    )


def _say(text: str, style: str | None = None) -> None:
    output.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

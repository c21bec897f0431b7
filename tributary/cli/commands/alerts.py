"""The command `alerts`."""

from __future__ import annotations

from typing import Annotated

import typer

from tributary.cli.commands.options import (
    DEFAULT_LAKE_FILE,
    DEFAULT_STATE_FOLDER,
    AsJson,
    LakeFile,
    StateFolderPath,
)
from tributary.cli.rendering import output, print_json, print_table
from tributary.contract.errors import TributaryError
from tributary.contract.lake import LakeFileError
from tributary.operations.remedy_words import remedy_words
from tributary.operations.workspace import Workspace


def alerts(
    test: Annotated[
        bool, typer.Option("--test", help="Send a test message to all places that the lake file names.")
    ] = False,
    lake: LakeFile = DEFAULT_LAKE_FILE,
    state: StateFolderPath = DEFAULT_STATE_FOLDER,
    as_json: AsJson = False,
) -> None:
    """List the alerts that were sent and are not over, or send a test message.

    The rules and the places are in [alerts] of the lake file. tributary start and tributary ingest --follow
    evaluate them. Each alert is sent once, and once more when it is over.

    With --test, the exit status is 1 if a message could not be sent.
    """
    from tributary.operations.alerts.keeper import FILE, send_test
    from tributary.operations.alerts.sent import read_sent

    workspace = Workspace.open(lake, state)
    if workspace.lake.alerts is None:
        raise LakeFileError(
            "the lake file has no [alerts]", where=str(lake), remedy="docs/lake-file.md describes them."
        )
    if test:
        failures: list[TributaryError] = []
        for name, error in send_test(workspace.lake.alerts, workspace.lake.name):
            if error is None:
                output.print(f"Sent by {name}.", highlight=False)
            else:
                failures.append(error)
                output.print(error.text(remedy_words), markup=False, highlight=False, soft_wrap=True)
        if failures:
            raise typer.Exit(1)
        return
    sent = read_sent(workspace.state.path / FILE)
    rows = [
        {"channel": channel, **one.model_dump()} for channel, found in sorted(sent.items()) for one in found
    ]
    if as_json:
        print_json(rows)
    elif rows:
        columns = ("channel", "rule", "subject", "since", "text")
        print_table(columns, [tuple(row[column] for column in columns) for row in rows])
    else:
        output.print("No alert is open.")

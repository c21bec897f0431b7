"""The command `link-check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tributary.cli.commands.options import AsJson
from tributary.cli.rendering import output, print_json


def link_check(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="A folder with the jars of Spark, Hudi and Iceberg of a release, at any depth.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Check that a release's jars have every class and method that the app's Java calls.

    Copy the jars from the release first. On EMR they are in /usr/lib/spark/jars, /usr/lib/hudi and
    /usr/share/aws/iceberg/lib. The jars that the job brings itself are added. Nothing is run, so the check
    needs neither a cluster nor an AWS account.

    The exit status is 0 if nothing is missing. Otherwise the app would run in plain PySpark on that release.
    """
    from spark_app.acceleration.link_check import classes_in, in_jars, missing_links
    from tributary.local.spark_jars import classes_jar
    from tributary.operations.runs.packaging import fetch_emr_jars

    jars = sorted(folder.rglob("*.jar"))
    if not jars:
        raise typer.BadParameter(f"{folder} has no jars", param_hint="FOLDER")
    own = classes_in(classes_jar())
    with in_jars([*jars, *fetch_emr_jars()]) as read:
        missing = missing_links(own, read)
    checked = len({link for found in own for link in found.links})
    if as_json:
        print_json({"jars": len(jars), "checked": checked, "missing": list(missing)})
    else:
        for name in missing:
            output.print(f"missing: {name}", markup=False, highlight=False, soft_wrap=True)
        output.print(
            f"{checked} references in {len(jars)} jars: {len(missing)} are missing.", highlight=False
        )
    if missing:
        raise typer.Exit(1)

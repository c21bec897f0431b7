"""The commands that build the files for AWS: `plugins build` and `package`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tributary.cli.commands.options import AsJson
from tributary.cli.rendering import messages, output, print_json
from tributary.contract.schema_registry import RegistryKind

plugins = typer.Typer(
    no_args_is_help=True, help="The plugins that Kafka Connect runs, here and on MSK Connect."
)
OutFolder = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where to put the zips.")]

_DIST = Path("dist")


@plugins.command("build")
def build_plugins(
    out: OutFolder = _DIST,
    avro: Annotated[
        RegistryKind | None,
        typer.Option(
            "--avro",
            metavar="apicurio|confluent|glue",
            help="Put this registry's Avro converter into the plugins of the sources.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Build the plugin zips for MSK Connect. The local worker runs the same zips.

    The same lock file (connectors/plugins.lock.json) gives the same bytes on any machine. A zip's name
    contains the hash of its content, so different content makes a different plugin.
    """
    from connectors import plugins as plugin_builder
    from tributary.artifacts.progress import shown_on

    with shown_on(messages) as progress:
        built = plugin_builder.build_plugins(out, progress, avro=avro)
    if as_json:
        print_json([{"name": one.name, "zip": str(one.zip), "sha256": one.sha256} for one in built])
        return
    for one in built:
        _say_built(one.zip, one.sha256)


def package(
    platform: Annotated[
        str | None,
        typer.Option(
            "--platform",
            metavar="NAME",
            help="Where it will run: linux-amd64 or linux-arm64 (EMR on Graviton). Default: this machine.",
        ),
    ] = None,
    out: OutFolder = _DIST,
    as_json: AsJson = False,
) -> None:
    """Build the Spark app with its dependencies as one zip, which spark-submit starts here and on EMR.

    The same sources give the same bytes on any machine. The command also writes a folder with the app's jar
    and the jars that EMR does not bring.
    """
    from tributary.artifacts.cache import sha256_of
    from tributary.operations.runs.packaging import build_jars, build_package

    built = [build_package(out, platform), *build_jars(out)]
    if as_json:
        print_json([{"file": str(one), "sha256": sha256_of(one)} for one in built])
        return
    for one in built:
        _say_built(one, sha256_of(one))


def _say_built(path: Path, sha256: str) -> None:
    megabytes = path.stat().st_size / 1_000_000
    output.print(f"{path}  {megabytes:.1f} MB  sha256 {sha256}", highlight=False, soft_wrap=True)

"""How the database stack names things of a source: constructs, outputs, and files beside the templates."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import CfnOutput, Stage

from stacks.base import TributaryStack
from tributary.contract.source import Source


def construct_id(name: str) -> str:
    """Return the id of a source's construct: `WebShop` for web_shop."""
    return "".join(part.title() for part in name.split("_"))


def tell(stack: TributaryStack, source: Source, what: str, description: str, value: str) -> None:
    """Add an output that is named after the source."""
    CfnOutput(stack, f"{construct_id(source.name)}{what}", description=description, value=value)


def beside_the_templates(stack: TributaryStack, name: str) -> Path:
    """Return the path of a file that `cdk synth` leaves in its folder."""
    stage = Stage.of(stack)
    assert stage is not None
    folder = Path(stage.outdir)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def shown_path(file: Path) -> str:
    """Return the path of a file beside the templates, as a person in the project's folder writes it."""
    folder = file.resolve().parent
    here = Path.cwd().resolve()
    return str(
        folder.relative_to(here) / file.name if folder.is_relative_to(here) else Path("cdk.out") / file.name
    )

"""What the database stack says of a source: names of constructs, outputs, and files beside the templates."""

from __future__ import annotations

from pathlib import Path

from aws_cdk import CfnOutput, Stage

from stacks.base import TributaryStack
from tributary.contract.source import Source


def construct_id(name: str) -> str:
    """`web_shop` as WebShop."""
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

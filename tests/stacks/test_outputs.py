"""The stacks say of themselves what the commands for a deployed lake read."""

from __future__ import annotations

import pytest

from tests.stacks.conftest import Synthesized
from tributary.contract.aws_names import Output
from tributary.operations.aws.deployed_lake import OUTPUTS


@pytest.mark.parametrize(
    ("settings", "place"), [("small", Output.EMR_CLUSTER), ("emr-serverless", Output.EMR_SERVERLESS)]
)
def test_the_stacks_have_the_outputs_that_the_commands_read(
    settings: str, place: str, synthesized: Synthesized
) -> None:
    templates = synthesized(settings).templates
    wanted = {(kind, output) for kind, outputs in OUTPUTS.items() for output in outputs} | {
        ("processing", Output.RUNTIME_ROLE),
        ("processing", place),
        ("streaming", Output.KAFKA_CLUSTER),
        ("connect", Output.CONNECTORS),
    }
    there = {
        (stack.lower(), output) for stack, found in templates.items() for output in found.get("Outputs", ())
    }
    assert wanted <= there

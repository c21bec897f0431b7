"""The outputs of the lake's stacks on AWS, found by the stacks' names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from botocore.exceptions import ClientError

from tributary.aws.session import AwsSession
from tributary.contract.aws_names import AwsNames, StackKind
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import BringUp


class NotDeployed(TributaryError):
    """A stack, or one of its outputs, does not exist."""


@dataclass(frozen=True)
class _Stack:
    state: str
    outputs: Mapping[str, str]


@dataclass
class StackOutputs:
    """Outputs of the stacks. Each stack is read once, and only when it is needed."""

    session: AwsSession
    names: AwsNames
    _stacks: dict[StackKind, _Stack] = field(default_factory=dict)

    def get(self, kind: StackKind, output: str) -> str:
        """Return the output. Raises NotDeployed if the stack or its output does not exist."""
        stack = self._stack(kind)
        if output not in stack.outputs:
            raise NotDeployed(
                f"the stack has no output {output}",
                where=self._where(kind),
                found=f"{', '.join(sorted(stack.outputs)) or 'no output'}, in state {stack.state}",
                remedy=BringUp(),
            )
        return stack.outputs[output]

    def find(self, kind: StackKind, output: str) -> str | None:
        """Return the output, or None if the stack has no such output. Raises NotDeployed without a stack."""
        return self._stack(kind).outputs.get(output)

    def _stack(self, kind: StackKind) -> _Stack:
        if kind not in self._stacks:
            self._stacks[kind] = self._read(kind)
        return self._stacks[kind]

    def _read(self, kind: StackKind) -> _Stack:
        try:
            (found,) = self.session.cloudformation.describe_stacks(StackName=self.names.stack(kind))["Stacks"]
        except ClientError as error:
            if error.response["Error"].get("Code") != "ValidationError":
                raise
            raise NotDeployed(
                "the stack does not exist",
                where=self._where(kind),
                found=error.response["Error"].get("Message"),
                remedy=[BringUp(), "If the lake is elsewhere, check [aws].region and AWS_PROFILE."],
            ) from error
        outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", ())}
        return _Stack(found["StackStatus"], outputs)

    def _where(self, kind: StackKind) -> str:
        return f"stack {self.names.stack(kind)}, account {self.session.account}, region {self.session.region}"

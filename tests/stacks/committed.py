"""Compares what is made from the templates with the committed file of it, and renews that file on request."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

RENEW = "TRIBUTARY_RENEW"
_ROOT = Path(__file__).parents[2]


def assert_committed(path: str, text: str) -> None:
    """`path` from the project's folder. With TRIBUTARY_RENEW=1 it is written, for a person to review."""
    file = _ROOT / path
    if os.environ.get(RENEW) == "1":
        file.write_text(text)
    if not file.exists() or file.read_text() != text:
        pytest.fail(
            f"{path} is not what the templates say. If the change is meant, renew it with\n"
            f"    {RENEW}=1 .venv/bin/pytest tests/stacks/test_templates.py\n"
            f"and review the difference."
        )

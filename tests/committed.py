"""Compare generated text with the committed copy, and renew that copy on request."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

RENEW = "TRIBUTARY_RENEW"
_ROOT = Path(__file__).parents[1]


def assert_committed(path: str, text: str) -> None:
    """Fail unless the file holds the text. With TRIBUTARY_RENEW=1, write it for a person to review.

    `path` starts at the project's folder."""
    file = _ROOT / path
    _write_on_request(file, text)
    if not file.exists() or file.read_text() != text:
        _fail(path)


def assert_documented(path: str, name: str, text: str) -> None:
    """Do the same for a part of a document: the lines between the comments `name` and `end of name`."""
    file = _ROOT / path
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    part = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    before = file.read_text()
    after, found = part.subn(lambda _: f"{begin}{text}\n{end}", before)
    assert found == 1, f"{path} has no place for {name}"
    _write_on_request(file, after)
    if file.read_text() != after:
        _fail(f"{path}, {name},")


def _write_on_request(file: Path, text: str) -> None:
    if os.environ.get(RENEW) == "1":
        file.write_text(text)


def _fail(what: str) -> None:
    pytest.fail(
        f"{what} differs from the text that this test generates. If the change is meant, renew it with\n"
        f"    {RENEW}=1 .venv/bin/pytest {_test_module()}\n"
        f"and review the difference."
    )


def _test_module() -> str:
    """The module of the test that runs now."""
    return os.environ.get("PYTEST_CURRENT_TEST", "tests").partition("::")[0]

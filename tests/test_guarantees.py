"""docs/guarantees.md names only tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
GUARANTEES = TESTS.parent / "docs" / "guarantees.md"


def test_every_test_that_a_promise_names_exists() -> None:
    named = set(re.findall(r"test_[a-z0-9_]+", GUARANTEES.read_text()))
    # Several folders can have a module of the same name.
    paths = [*TESTS.rglob("test_*.py")]
    modules = {path.stem for path in paths}
    defined = set(re.findall(r"^def (test_\w+)", "\n".join(path.read_text() for path in paths), re.MULTILINE))

    # A name that ends with an underscore stands for all tests that begin with it: test_no_secret_is_….
    missing = {
        name
        for name in named - modules - defined
        if not (name.endswith("_") and any(test.startswith(name) for test in defined))
    }
    assert named
    assert missing == set()

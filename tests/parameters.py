"""Parameters of tests, some of which only `make test-long` tries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_then_long(values: Iterable[Any], every: int | None = None) -> list[Any]:
    """Return the values for `parametrize`. All but the first one, or every so many, are marked as long."""
    return [
        value if (index % every if every else index) == 0 else pytest.param(value, marks=pytest.mark.long)
        for index, value in enumerate(values)
    ]

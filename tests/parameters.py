"""Parameters of tests, some of which only `make test-long` tries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_then_long(values: Iterable[Any]) -> list[Any]:
    """Return the values for `parametrize`. All but the first one are marked as long."""
    first, *others = values
    return [first, *(pytest.param(value, marks=pytest.mark.long) for value in others)]

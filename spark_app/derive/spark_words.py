"""Spark's own words about an error, without its plan and without a stack of calls."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError


def words_of(error: BaseException) -> str:
    """Return the first sentence of an error, or its kind if it says nothing."""
    text = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    return text.strip().split("; line ")[0].partition("\n")[0].strip() or type(error).__name__

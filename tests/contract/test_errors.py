"""An error is one paragraph with all of its parts."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from tributary.contract.errors import TributaryError, told_by

PARTS = st.none() | st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1).map(
    str.strip
).filter(bool)


@given(PARTS, PARTS, PARTS, PARTS)
def test_an_error_s_paragraph_has_every_part_and_no_line_break(
    where: str | None, found: str | None, expected: str | None, remedy: str | None
) -> None:
    error = TributaryError("it is\nwrong", where=where, found=found, expected=expected, remedy=remedy)
    text = str(error)
    assert "it is wrong" in text
    assert "\n" not in text
    parts = (where, found, expected, remedy)
    assert "None" not in text or any("None" in part for part in parts if part is not None)
    for part in parts:
        assert part is None or " ".join(part.split()) in text


def test_an_error_reads_as_sentences() -> None:
    error = TributaryError(
        "the port is in use", where="kafka", found="port 9092", expected="a free one", remedy="Free it"
    )
    assert str(error) == "kafka: the port is in use: found port 9092, expected a free one. Free it."


def test_an_error_survives_pickling() -> None:
    error = TributaryError("wrong", where="here")
    assert str(pickle.loads(pickle.dumps(error))) == "here: wrong."


_OF_PY4J = """An error occurred while calling o278643.get.
: java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.TimeoutException: Timed out
\tat java.base/java.util.concurrent.CompletableFuture.reportGet(CompletableFuture.java:396)
\tat py4j.Gateway.invoke(Gateway.java:282)
Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out
Caused by: org.apache.kafka.common.errors.DisconnectException: Cancelled listTopics request
\t... 12 more
"""


def test_java_s_errors_are_told_without_its_calls() -> None:
    assert told_by(RuntimeError(_OF_PY4J)) == (
        "ExecutionException: TimeoutException: Timed out, "
        "caused by DisconnectException: Cancelled listTopics request"
    )
    once = (
        "An error occurred while calling o1.f.\n: a.b.TimeoutException: 30003 ms, see a.b.Client\n\tat a.b.C"
    )
    assert told_by(RuntimeError(once)) == "TimeoutException: 30003 ms, see a.b.Client"


def test_an_error_of_python_is_told_with_its_kind_on_one_line() -> None:
    assert told_by(OSError("the disk\n  is full")) == "OSError: the disk is full"
    of_spark = RuntimeError("[NOT_FOUND] no such path\n\nJVM stacktrace:\na.b.C\n\tat a.b.D(E.java:1)")
    assert told_by(of_spark) == "RuntimeError: [NOT_FOUND] no such path"

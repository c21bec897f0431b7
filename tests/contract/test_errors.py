"""An error is one paragraph with all of its parts."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from tributary.contract.errors import TributaryError

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

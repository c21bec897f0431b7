"""A column's type can be spelled in each of PostgreSQL's ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tributary.contract.column_types import ALIASES, TYPE_NAMES, ColumnType, NotAColumnType


@given(st.sampled_from([*TYPE_NAMES, *ALIASES]), st.booleans(), st.booleans())
def test_every_name_and_short_name_is_known_with_its_array_in_either_case(
    name: str, is_array: bool, is_upper: bool
) -> None:
    text = f" {name.replace(' ', '  ')} {'[]' if is_array else ''}"
    parsed = ColumnType.parse(text.upper() if is_upper else text)
    assert parsed == ColumnType(ALIASES.get(name, name), (), is_array)
    assert parsed.name in TYPE_NAMES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("numeric(10, 2)", ColumnType("numeric", (10, 2))),
        ("decimal(5)[]", ColumnType("numeric", (5,), is_array=True)),
        ("timestamp(3) without time zone", ColumnType("timestamp", (3,))),
        ("timestamp (6) with time zone", ColumnType("timestamp with time zone", (6,))),
        ("character varying(40)", ColumnType("varchar", (40,))),
    ],
)
def test_arguments_in_parentheses_are_read(text: str, expected: ColumnType) -> None:
    assert ColumnType.parse(text) == expected


@pytest.mark.parametrize(
    "text", ["", "biginteger", "int(3)", "numeric(1,2,3)", "text[][]", "mood", "numeric("]
)
def test_a_text_that_is_not_a_type_is_refused(text: str) -> None:
    with pytest.raises(NotAColumnType):
        ColumnType.parse(text)

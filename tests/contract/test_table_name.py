"""Any three names make a table's name, and no two table names have the same text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.lake_files import IDENTIFIERS
from tributary.contract.table_name import NotATableName, TableName

NAMES = st.builds(TableName, IDENTIFIERS, IDENTIFIERS, IDENTIFIERS)


@given(NAMES)
def test_a_name_is_read_back_from_its_text(name: TableName) -> None:
    assert TableName.parse(str(name)) == name


@given(NAMES, NAMES)
def test_two_table_names_never_have_the_same_text(one: TableName, other: TableName) -> None:
    assert (str(one) == str(other)) == (one == other)


def test_an_ordinary_name_is_written_without_quotes() -> None:
    assert str(TableName("shop", "public", "Order Items")) == "shop.public.Order Items"


@pytest.mark.parametrize(
    "text",
    ["", "orders", "public.orders", "a.b.c.d", "a..c", "a.b.", '"a.b.c', 'a.b.""', 'a.b."c"d', '"a"b.c.d'],
)
def test_a_text_that_is_not_a_table_name_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(NotATableName, match=r"shop\.public\.orders") as caught:
        TableName.parse(text)
    assert caught.value.found == repr(text)

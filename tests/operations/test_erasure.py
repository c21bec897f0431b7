"""The keys to erase are read as a person wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_app.sources.bronze_upkeep import text_of_key
from tributary.api.row_events import NotAKey
from tributary.contract.lake import TablePolicy
from tributary.operations.erasure import _in_timeline, keys_of_texts, read_keys


def test_columns_of_a_key_whose_values_are_names_of_folders_are_told() -> None:
    policy = TablePolicy(partition_by=("region", "left(id, 2)", "hash(line, 8)"))
    keys = [{"id": "7", "line": "2", "region": "north"}]
    assert _in_timeline(policy, keys) == ("id", "region")
    assert _in_timeline(TablePolicy(), keys) == ()


def test_keys_are_values_columns_or_json() -> None:
    found = keys_of_texts(["7", "order=7,line=2", '{"id": 8}'])
    assert found == ({"": "7"}, {"order": "7", "line": "2"}, {"id": "8"})


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("id\n7\n8\n", ({"id": "7"}, {"id": "8"})),
        ("\ufefforder,line\r\n7,2\r\n\r\n", ({"order": "7", "line": "2"},)),
        ('name\n"a, ""b"""\n ä \n', ({"name": 'a, "b"'}, {"name": " ä "})),
    ],
)
def test_a_file_of_keys_is_csv_with_a_line_of_column_names(
    tmp_path: Path, text: str, keys: tuple[dict[str, str], ...]
) -> None:
    (tmp_path / "keys.csv").write_bytes(text.encode())
    assert read_keys(tmp_path / "keys.csv") == keys


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "without a line of column names"),
        ("id,id\n7,8\n", "without a line of column names"),
        ("id,\n7,8\n", "without a line of column names"),
        ("id\n", "without keys"),
        ("order,line\n7,2\n8\n", "line 3"),
    ],
)
def test_a_file_that_is_no_list_of_keys_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "keys.csv").write_text(text)
    with pytest.raises(NotAKey) as error:
        read_keys(tmp_path / "keys.csv")
    assert message in str(error.value)


_KEYS = st.tuples(st.text("1:ab"), st.text("1:ab")).map(lambda values: dict(zip("ab", values, strict=True)))


@given(_KEYS, _KEYS)
def test_two_keys_have_one_text_only_if_they_are_equal(one: dict[str, str], other: dict[str, str]) -> None:
    assert (text_of_key(one) == text_of_key(other)) == (one == other)

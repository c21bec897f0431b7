"""A run makes no table that the check of its source has left out, and none before that check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from spark_app.run.new_tables import NewTables
from tributary.contract.source_look import SourceLook

FIT, UNFIT, UNMET = "shop.public.fit", "shop.public.unfit", "shop.public.unmet"
OF_OTHERS, ELSEWHERE = "shop.events.order", "erp.dbo.orders"
EVERYTHING = {f"topic.{name}": name for name in (FIT, UNFIT, UNMET, OF_OTHERS, ELSEWHERE)}


@dataclass(frozen=True)
class Looks:
    """One source that was looked at."""

    def read_looks(self) -> Mapping[str, SourceLook]:
        return {"shop": SourceLook("shop", frozenset({FIT, UNFIT}), frozenset({UNFIT}))}


@pytest.mark.parametrize(
    ("waits", "read_again", "not_made"),
    [
        (False, [], {UNFIT}),
        (True, [], {UNFIT, UNMET}),
        (True, [UNFIT], {UNMET}),
        (False, [UNFIT], set()),
    ],
)
def test_a_table_is_made_unless_it_is_left_out_or_not_judged_yet(
    waits: bool, read_again: list[str], not_made: set[str]
) -> None:
    new = NewTables(Looks(), waits, is_in_catalog=lambda topic: topic != f"topic.{OF_OTHERS}")
    assert EVERYTHING.keys() - new.allowed(EVERYTHING, read_again) == {f"topic.{name}" for name in not_made}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"tables": {}, "gone": []}', '{"tables": 3}'])
def test_a_look_of_an_earlier_version_says_nothing(text: str) -> None:
    assert SourceLook.from_json(text) is None

"""A table that is left out is shown with every reason and what to do."""

from __future__ import annotations

import io

from rich.console import Console

from tributary.cli.left_out_view import left_out_facts, print_left_out
from tributary.local.left_out import LeftOutTable

LEFT_OUT = LeftOutTable(
    table="shop.public.r1",
    reasons=("table shop.public.r1: it has no key.", '[table."shop.public.r1"].key: found nr.'),
    remedies=("Give it one.", ""),
)


def test_a_table_is_named_once_with_each_reason_before_its_remedy() -> None:
    shown = io.StringIO()
    print_left_out(LEFT_OUT, Console(file=shown, width=20))
    assert shown.getvalue() == (
        '  shop.public.r1 is left out: it has no key. Give it one. [table."shop.public.r1"].key: found nr.\n'
    )


def test_a_table_whose_reasons_came_without_remedies_is_shown() -> None:
    shown = io.StringIO()
    print_left_out(LEFT_OUT.model_copy(update={"remedies": ()}), Console(file=shown, width=20))
    assert shown.getvalue() == (
        '  shop.public.r1 is left out: it has no key. [table."shop.public.r1"].key: found nr.\n'
    )


def test_the_facts_have_the_names_of_a_table_s_outcome() -> None:
    assert left_out_facts(LEFT_OUT) == {
        "state": "left out",
        "since": None,
        "reason": 'table shop.public.r1: it has no key. [table."shop.public.r1"].key: found nr.',
        "remedy": "Give it one.",
    }

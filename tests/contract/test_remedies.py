"""A remedy survives storage as JSON, and names the table of its error."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from tributary.contract.errors import TributaryError
from tributary.contract.remedies import (
    KINDS,
    Advice,
    Ingest,
    RebuildTable,
    Remedies,
    Remedy,
    TakeSnapshot,
    plain_words,
    remedies_as_json,
    remedies_for_table,
    remedies_from_json,
    remedies_of,
    said_once,
)

PROJECT = Path(__file__).parents[2]
COMMAND = re.compile(
    r"\btributary (up|down|status|ingest|rebuild|new-epoch|query|tables|history|quarantine|submit)\b"
)
REMEDIES: st.SearchStrategy[Remedies] = st.lists(
    st.sampled_from(list(KINDS.values())).flatmap(st.from_type)
).map(tuple)


def test_every_kind_of_remedy_has_a_name_in_json() -> None:
    assert set(KINDS.values()) == set(get_args(Remedy))


@given(REMEDIES)
def test_remedies_are_the_same_after_json(remedies: Remedies) -> None:
    assert remedies_from_json(json.loads(json.dumps(remedies_as_json(remedies)))) == remedies


def test_a_kind_that_only_another_version_knows_is_skipped() -> None:
    known = {"kind": "advice", "text": "Wait."}
    stored = [{"kind": "of tomorrow"}, {"kind": "advice", "of": "tomorrow"}, {}, known]
    assert remedies_from_json(stored) == (Advice("Wait."),)


def test_a_text_among_remedies_is_advice() -> None:
    assert remedies_of(None) == ()
    assert remedies_of("Wait.") == (Advice("Wait."),)
    assert remedies_of(["Wait.", RebuildTable()]) == (Advice("Wait."), RebuildTable())


def test_a_remedy_without_a_table_gets_the_error_s_table() -> None:
    remedies = (RebuildTable(), RebuildTable("other"), Ingest(), TakeSnapshot(), Advice("Wait."))
    assert remedies_for_table(remedies, 'shop.public."odd.name"') == (
        RebuildTable('shop.public."odd.name"'),
        RebuildTable("other"),
        Ingest(table='shop.public."odd.name"'),
        TakeSnapshot("shop"),
        Advice("Wait."),
    )


@given(REMEDIES.filter(bool))
def test_an_error_says_what_to_do_without_naming_a_command(remedies: Remedies) -> None:
    generated = {text for one in remedies for text in vars(one).values() if text is not None}
    text = str(TributaryError("wrong", where="here", remedy=remedies))
    assert text.startswith("here: wrong. ")
    assert COMMAND.search(text) is None or any(COMMAND.search(part) for part in generated)
    assert all(
        plain_words(one).strip() for one in remedies if not isinstance(one, Advice) or one.text.strip()
    )


def test_no_remedy_that_several_surfaces_show_is_prose_with_a_command() -> None:
    folders = ("connectors", "spark_app", "tributary/contract", "tributary/api", "tributary/artifacts")
    modules = [path for folder in folders for path in (PROJECT / folder).rglob("*.py")]
    texts = [text for path in modules for text in _remedy_texts(ast.parse(path.read_text()))]
    assert len(texts) > 50
    assert [text for text in texts if COMMAND.search(text)] == []


def _remedy_texts(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.keyword) and node.arg == "remedy":
            yield from (
                one.value
                for one in ast.walk(node.value)
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            )


def test_what_several_problems_need_is_said_once_after_the_last_of_them() -> None:
    assert said_once(["Rename it.", "Add a key.", "Rename it."]) == ("", "Add a key.", "Rename it.")

"""Each surface words every remedy, and names only commands and pages that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from tributary.cli import main
from tributary.cli.aws import remedy_words as remedy_words_on_aws
from tributary.cli.aws.remedy_words import worded_for_aws
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import (
    KINDS,
    Advice,
    BringUp,
    CheckStatus,
    EditLakeFile,
    Ingest,
    ListTables,
    NameLakeFile,
    OpenEpoch,
    ReadRunbook,
    RebuildTable,
    Remedy,
    Runbook,
    ShowQuarantine,
    StopRun,
    TakeSnapshot,
    Words,
)
from tributary.operations import remedy_words

PROJECT = Path(__file__).parents[2]
TABLE = 'shop.public."odd name"'
REMEDIES: tuple[Remedy, ...] = (
    Advice("Wait a minute."),
    BringUp(),
    CheckStatus(),
    EditLakeFile("raise the table's history"),
    Ingest(),
    Ingest("bronze", TABLE),
    ListTables(),
    NameLakeFile(),
    OpenEpoch(TABLE),
    *(ReadRunbook(runbook) for runbook in get_args(Runbook)),
    RebuildTable(),
    RebuildTable(TABLE),
    ShowQuarantine(TABLE),
    StopRun(),
    TakeSnapshot("shop"),
)
SURFACES = {"command": remedy_words.remedy_words, "AWS": remedy_words_on_aws.remedy_words}
ONLY_HERE = re.compile(r"tributary (?!submit|status --aws)|Ctrl-C|docs/operate\.md")


def test_the_examples_are_of_every_kind() -> None:
    assert {type(remedy) for remedy in REMEDIES} == set(KINDS.values())


@pytest.mark.parametrize("words", SURFACES.values(), ids=SURFACES)
@pytest.mark.parametrize("remedy", REMEDIES, ids=str)
def test_a_remedy_is_whole_sentences_on_every_surface(words: Words, remedy: Remedy) -> None:
    text = words(remedy)
    assert text.endswith(".")
    assert "None" not in text


@pytest.mark.parametrize("words", SURFACES.values(), ids=SURFACES)
def test_every_named_command_exists(words: Words) -> None:
    texts = map(words, REMEDIES)
    named = [found for text in texts for found in re.findall(r"(tributary .+?)\.(?=$| docs/)", text)]
    assert len(named) >= 6
    for command in named:
        _parse(shlex.split(command)[1:])


def _parse(arguments: list[str]) -> None:
    command: Any = typer.main.get_command(main.app)
    while hasattr(command, "commands"):
        command = command.commands[arguments.pop(0)]
    command.make_context(command.name, arguments)


def test_a_table_s_name_survives_the_shell() -> None:
    assert shlex.split(remedy_words.remedy_words(RebuildTable(TABLE)))[-1] == f"{TABLE}."


def test_a_deployed_lake_has_no_command_and_no_page_of_this_machine() -> None:
    for remedy in REMEDIES:
        assert ONLY_HERE.search(remedy_words_on_aws.remedy_words(remedy)) is None


@pytest.mark.parametrize("runbooks", [remedy_words.RUNBOOKS, remedy_words_on_aws.RUNBOOKS])
def test_every_named_page_and_section_exists(runbooks: dict[Runbook, str]) -> None:
    assert runbooks.keys() == set(get_args(Runbook))
    for place in runbooks.values():
        page, _, anchor = place.partition("#")
        headings = re.findall(r"^#+ (.+)$", (PROJECT / page).read_text(), re.MULTILINE)
        assert not anchor or anchor in {
            re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings
        }


def test_an_error_of_a_command_for_aws_says_what_to_do_there() -> None:
    with pytest.raises(TributaryError) as caught, worded_for_aws():
        raise TributaryError("the table is blocked", remedy=["Think.", RebuildTable("shop.public.orders")])
    assert caught.value.text(remedy_words.remedy_words) == (
        "the table is blocked. Think. To rebuild the table, run tributary submit rebuild shop.public.orders."
    )

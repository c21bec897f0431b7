"""An orphan is found, kept or removed, and a table that the lake follows is never removed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from tributary.api.tables import UnknownTable
from tributary.cli.orphan_view import orphan_text
from tributary.contract.derived import derived_table
from tributary.contract.item_stream import DELETED_KEYS_FOLDER
from tributary.contract.lake import parse_lake
from tributary.contract.online_snapshot import record_name
from tributary.contract.orphan import DecidedOrphan, Decision, from_json, orphan_name, to_json
from tributary.contract.pause import pause_name
from tributary.contract.table_name import TableName
from tributary.operations.orphan_files import OrphanFiles, why_orphan
from tributary.operations.orphans import Contents, NotAnOrphan, Orphan, Storage, chosen, orphans_among
from tributary.operations.table_states import TableState
from tributary.operations.verify.record import verification_name

LAKE = parse_lake("""
[lake]
name = "shop"
[source.counter]
engine = "postgres"
database = "counter"
tables = ["counting.*"]
""")
BEADS = TableName("counter", "counting", "beads")
OLD = TableName("counter", "counting", "old")
FOREIGN = TableName("sold", "counting", "beads")
EXCLUDED = TableName("counter", "other", "beads")


class Interrupted(Exception):
    """The process ended."""


def decided(table: TableName, decision: Decision) -> DecidedOrphan:
    return DecidedOrphan(table, decision, f"shop.{table}", "2026-01-02T03:04:05+00:00")


def orphan(table: TableName, decision: Decision | None = None, *, is_stored: bool = True) -> Orphan:
    known = None if decision is None else decided(table, decision)
    return Orphan(table, "its source no longer has it", is_stored, known)


def test_a_table_is_an_orphan_if_its_source_its_pattern_or_the_table_itself_is_gone() -> None:
    reasons = {table: why_orphan(LAKE, {OLD}, table) for table in (BEADS, OLD, FOREIGN, EXCLUDED)}
    assert reasons == {
        BEADS: None,
        OLD: "its source no longer has it",
        FOREIGN: "the lake file has no [source.sold]",
        EXCLUDED: "[source.counter].tables does not take it",
    }
    found = orphans_among(reasons, LAKE, {OLD}, {OLD}, {EXCLUDED: decided(EXCLUDED, "removed")})
    assert {table: one.state for table, one in found.items()} == {
        OLD: "orphan",
        FOREIGN: "orphan",
        EXCLUDED: "removed",
    }


def test_routed_events_and_derived_tables_are_orphans_only_without_their_entry() -> None:
    lake = parse_lake("""
        [lake]
        name = "shop"
        [source.counter]
        engine = "postgres"
        database = "counter"
        tables = ["counting.*"]
        [source.counter.outbox]
        table = "counting.events"
        [derived.totals]
        key = ["id"]
        sql = "SELECT id FROM beads"
    """)
    totals, routed = derived_table("totals"), TableName("counter", "outbox", "order")
    assert [why_orphan(lake, {routed}, table) for table in (totals, routed)] == [None, None]
    assert why_orphan(LAKE, set(), totals) == "the lake file has no [derived.totals]"
    assert why_orphan(LAKE, set(), routed) == "[source.counter].tables does not take it"


@pytest.mark.parametrize("decision", ["kept", "removed"])
@pytest.mark.parametrize("topic", [None, "shop.counter.old"])
def test_a_decision_is_read_as_it_was_written(decision: Decision, topic: str | None) -> None:
    one = dataclasses.replace(decided(OLD, decision), topic=topic)
    assert from_json(to_json(one)) == one


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"table": "a.b.c", "decision": "sold", "topic": null}'])
def test_a_text_that_is_no_decision_is_none(text: str) -> None:
    assert from_json(text) is None


@pytest.mark.parametrize(
    ("decision", "is_stored", "state", "is_well"),
    [
        (None, True, "orphan", True),
        ("kept", True, "kept", True),
        ("removed", True, "removal interrupted", False),
    ],
)
def test_the_status_asks_about_an_orphan_until_somebody_decides(
    decision: Decision | None, is_stored: bool, state: str, is_well: bool
) -> None:
    one = orphan(OLD, decision, is_stored=is_stored)
    table = TableState(OLD, 5, None, orphan=one)
    assert (table.state, table.is_well) == (state, is_well)
    asks = "tributary orphans" in orphan_text(one)
    assert asks == (decision != "kept")


def test_a_table_that_the_lake_follows_is_refused_by_name_and_passed_over_by_a_pattern() -> None:
    orphans = {OLD: orphan(OLD)}
    assert [one.table for one in chosen(orphans, ["old"], [BEADS, OLD])] == [OLD]
    assert [one.table for one in chosen(orphans, ["counting.*"], [BEADS, OLD])] == [OLD]
    with pytest.raises(NotAnOrphan, match="the lake follows it") as error:
        chosen(orphans, ["old", "beads"], [BEADS, OLD])
    assert error.value.where == str(BEADS)
    with pytest.raises(UnknownTable):
        chosen(orphans, ["nothing"], [BEADS, OLD])


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    """A lake with two tables, each of which has all kinds of files."""
    names = LAKE.names
    for table in (BEADS, OLD):
        path = names.table_path(table)
        for file in (
            f"silver/{path}/.hoodie/hoodie.properties",
            f"silver/{path}/day=1/rows.parquet",
            f"quarantine/{path}/_outcome.json",
            f"quarantine/{DELETED_KEYS_FOLDER}/{path}/keys.parquet",
            f"quarantine/{pause_name(path)}",
            f"quarantine/{record_name(path)}",
            f"quarantine/{verification_name(path)}",
        ):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text("0123456789")
    # S3 needs no folders, and a disk does.
    (tmp_path / "quarantine" / orphan_name(names.table_path(OLD))).parent.mkdir(parents=True)
    filesystem = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    return Storage(filesystem, names, "silver", "quarantine")


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_removed_table_leaves_nothing_but_the_decision_and_no_other_table_changes(
    storage: Storage, tmp_path: Path
) -> None:
    before = _files(tmp_path)
    assert storage.contents(OLD) == Contents(4, 40)
    storage.remove(decided(OLD, "removed"))
    record = f"quarantine/{orphan_name(storage.names.table_path(OLD))}"
    kept = {
        file for file in before if not file.removesuffix(".json").endswith("/old") and "/old/" not in file
    }
    assert _files(tmp_path) == {*kept, record}
    assert len(kept) == 7
    assert storage.contents(OLD) == Contents(0, 0)
    assert storage.decisions.read() == {OLD: decided(OLD, "removed")}
    storage.decisions.forget(OLD)
    storage.decisions.forget(OLD)
    assert storage.decisions.read() == {}


class _Stopping:
    """A file system that ends the process before one of its changes."""

    def __init__(self, real: Any, left: int) -> None:
        self._real, self.left = real, left

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        return self._counted(found) if name.startswith(("delete", "open_output")) else found

    def _counted(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*arguments: Any) -> Any:
            if not self.left:
                raise Interrupted
            self.left -= 1
            return change(*arguments)

        return changed


@pytest.mark.parametrize("changes", range(8))
def test_a_removal_that_is_interrupted_anywhere_is_shown_and_can_be_repeated(
    storage: Storage, tmp_path: Path, changes: int
) -> None:
    before = _files(tmp_path)
    stopping = dataclasses.replace(storage, filesystem=_Stopping(storage.filesystem, changes))
    with pytest.raises(Interrupted):
        stopping.remove(decided(OLD, "removed"))
    known = storage.decisions.read()
    # Without the decision, nothing is gone. With it, no ingest makes the table again.
    assert known == {OLD: decided(OLD, "removed")} or _files(tmp_path) == before
    # Whoever still sees the table sees all of its rows.
    has_timeline = (tmp_path / "silver" / storage.names.table_path(OLD) / ".hoodie").exists()
    has_rows = (tmp_path / "silver" / storage.names.table_path(OLD) / "day=1").exists()
    assert has_rows or not has_timeline
    state = Orphan(OLD, "gone", is_stored=True, decision=known.get(OLD)).state
    assert state == ("removal interrupted" if changes else "orphan")

    storage.remove(decided(OLD, "removed"))
    assert storage.contents(OLD) == Contents(0, 0)
    assert OrphanFiles(storage.filesystem, storage.names, "quarantine").read().keys() == {OLD}

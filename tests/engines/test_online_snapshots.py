"""An online snapshot comes to its end for any engine, wherever the process that drives it is interrupted."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from connectors.engines.debezium_options import READ_TABLES
from connectors.engines.definitions import ColumnDefinition, TableDefinition
from connectors.engines.engine import Awaited
from spark_app.ledger.ledger import AppliedSnapshot
from tests.engines.abacus import AbacusServer, AbacusSession
from tests.engines.lakes import BEADS, lake_with
from tributary.contract.errors import TributaryError
from tributary.contract.online_snapshot import (
    Failed,
    Noticed,
    Read,
    Reading,
    Record,
    Request,
    Requested,
    from_json,
    to_json,
)
from tributary.contract.orphan import ORPHANS_FOLDER, DecidedOrphan
from tributary.contract.source import Events
from tributary.contract.source_look import SourceLook, look_name
from tributary.contract.table_name import TableName
from tributary.operations.kafka_cluster import KafkaCluster
from tributary.operations.kafka_topics import Topic
from tributary.operations.orphan_files import OrphanFiles
from tributary.operations.reconcile import proof
from tributary.operations.reconcile.barrier import Patience
from tributary.operations.reconcile.proof import SourceLink
from tributary.operations.snapshots import advance as advancing
from tributary.operations.snapshots import keeper, record_files
from tributary.operations.snapshots.asking import ReadAgain, read_again
from tributary.operations.snapshots.notifications import Notification, progress_of
from tributary.operations.snapshots.record_files import LeftOutNote, RecordFiles, read_reasons
from tributary.operations.snapshots.renewals import SECONDS_BETWEEN_TRIES, Renewals
from tributary.operations.snapshots.silent import Finding, ask, notice
from tributary.operations.snapshots.view import is_different, paragraph, state_of
from tributary.operations.sourced_lake import SourcedLake
from tributary.operations.text_files import read_text, write_text

TOPIC = "shop.counter.counting.beads"
NOTIFICATIONS = "__tributary.shop.counter.notifications"
ONE = TableDefinition("1", "a", (ColumnDefinition("id", "1", "int"),))
REQUEST = Request("id", BEADS, ("a reason",), 1_000_000)


class Interrupted(Exception):
    """The process ended."""


@dataclass
class World:
    """Kafka, the lake's storage and the connector, as the functions see them.

    left       after how many effects the process is interrupted; None: never
    is_prompt  the connector reads a table as soon as Kafka has to hold what was committed
    """

    server: AbacusServer
    files: RecordFiles
    ends: dict[str, dict[int, int]] = field(
        default_factory=lambda: {TOPIC: {0: 5, 1: 7}, NOTIFICATIONS: {0: 3}}
    )
    told: list[tuple[int, bytes]] = field(default_factory=list)
    applied: AppliedSnapshot | None = None
    left: int | None = None
    is_prompt: bool = False
    heard: set[str] = field(default_factory=set)
    events: Events = field(default_factory=Events)

    @property
    def link(self) -> SourceLink:
        lake = lake_with()
        source = lake.source("counter").model_copy(update={"events": self.events})
        files = SimpleNamespace(filesystem=None)
        return SourceLink(
            lake, source, lambda: self.session, KafkaCluster("kafka"), files, "silver", lambda: None
        )

    @property
    def sourced_lake(self) -> SourcedLake:
        files = SimpleNamespace(filesystem=self.files.filesystem)
        link = self.link
        opened = SimpleNamespace(files=files, lake=link.lake, quarantine="quarantine", silver="silver")
        found = SimpleNamespace(
            lake=link.lake,
            open_lake=opened,
            kafka=link.kafka,
            links=lambda: (link,),
            alone=lambda _: nullcontext(True),
        )
        return cast(SourcedLake, found)

    @property
    def session(self) -> AbacusSession:
        return AbacusSession(self.server, "counter")

    def effect(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def interrupted_or_real(*arguments: Any) -> Any:
            if self.left is not None:
                if not self.left:
                    raise Interrupted
                self.left -= 1
            return real(*arguments)

        return interrupted_or_real

    def tell(self, kind: str, **values: str) -> None:
        payload = {"aggregate_type": "Incremental Snapshot", "type": kind, "additional_data": values}
        end = self.ends[NOTIFICATIONS][0]
        self.told.append((end, json.dumps({"payload": payload}).encode()))
        self.ends[NOTIFICATIONS][0] = end + 1

    def connect_reads(self) -> None:
        """Let the connector read the table to its end, once for each time that it was asked."""
        for _ in self.server.asked.keys() - self.heard:
            self.tell("STARTED")
            self.tell("IN_PROGRESS", **IN_PROGRESS)
            self.ends[TOPIC] = {p: end + 10 for p, end in self.ends[TOPIC].items()}
            self.tell("TABLE_SCAN_COMPLETED", **COMPLETED)
            self.tell("COMPLETED")
        self.heard |= self.server.asked.keys()

    def steps_to_kafka(self, *_: object) -> Iterator[Awaited]:
        if self.is_prompt:
            self.connect_reads()
        yield Awaited("nothing", lambda: None)

    def notice(self, *followed: TableName) -> tuple[Request, ...]:
        return notice(self.link, self.session, self.files, followed).requests

    def look(self, *followed: TableName) -> Finding:
        return notice(self.link, self.session, self.files, followed)

    @property
    def seen(self) -> SourceLook:
        """What the Spark app knows of the last look."""
        text = read_text(self.files.filesystem, f"quarantine/{look_name('counter')}")
        look = SourceLook.from_json(text or "")
        assert look is not None
        return look

    @property
    def gone(self) -> frozenset[TableName]:
        look = self.files.read_look("counter")
        return frozenset() if look is None else look.gone

    def advance(self) -> Record | None:
        patience = Patience.of(5)
        return advancing.advance(
            self.link, self.session, self.files, self.files.read().values(), patience
        ).get(BEADS)


IN_PROGRESS = {
    "current_collection_in_progress": "counting.beads",
    "chunk_index": "2",
    "total_chunks": "4",
    "total_rows": "400",
}
COMPLETED = {"scanned_collection": "counting.beads", "total_rows": "400", "status": "SUCCEEDED"}


@pytest.fixture
def world(abacus: AbacusServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    base = LocalFileSystem()
    for folder in ("_snapshots/counter/counting", "_definitions"):
        (tmp_path / "quarantine" / folder).mkdir(parents=True)
    files = RecordFiles(SubTreeFileSystem(str(tmp_path), base), lake_with().names, "quarantine")
    abacus.definitions = {BEADS: ONE}
    world = World(abacus, files)

    def topics(_: KafkaCluster, wanted: list[str]) -> dict[str, Topic]:
        return {name: Topic(f"id of {name}", dict(world.ends[name])) for name in wanted if name in world.ends}

    def notifications(_: KafkaCluster, __: str, start: int) -> list[tuple[int, bytes]]:
        return [(offset, value) for offset, value in world.told if offset >= start]

    def last_commit(*_: object) -> object:
        return SimpleNamespace(ledger=SimpleNamespace(snapshot=world.applied))

    monkeypatch.setattr(advancing, "read_topics", topics)
    monkeypatch.setattr(advancing, "read_notifications", notifications)
    monkeypatch.setattr(advancing, "read_last_commit", last_commit)
    monkeypatch.setattr(record_files, "write_text", world.effect(write_text))
    engine = world.link.engine
    for name in ("ask_for_snapshot", "forget_request"):
        monkeypatch.setattr(engine, name, world.effect(getattr(engine, name)))
    monkeypatch.setattr(engine, "steps_to_kafka", world.steps_to_kafka)
    return world


@pytest.mark.parametrize("effects", range(7))
def test_a_snapshot_ends_although_its_driver_is_interrupted_after_any_effect(
    world: World, effects: int
) -> None:
    ask(world.files, [BEADS], "a reason")
    world.left, world.is_prompt = effects, True
    for _ in range(8):
        try:
            record = world.advance()
        except Interrupted:
            world.left = None
            continue
        if isinstance(record, Read):
            break
    assert isinstance(record, Read)
    assert record.began == {0: 5, 1: 7}
    assert record.ended == world.ends[TOPIC]
    assert record.topic_id == f"id of {TOPIC}"
    assert isinstance(world.advance(), Read), "the table has not applied it"
    world.applied = AppliedSnapshot(record.request.id, record.began, 0)
    assert world.advance() is None
    assert world.files.read() == {}
    assert world.server.asked == {}


def test_a_snapshot_is_not_over_while_a_crash_lets_the_connector_read_the_last_rows_again(
    world: World,
) -> None:
    ask(world.files, [BEADS], "a reason")
    world.advance()
    world.connect_reads()
    # The connector ended before Kafka Connect had stored its place, and reads a part again.
    world.tell("IN_PROGRESS", **{**IN_PROGRESS, "chunk_index": "4"})
    reading = world.advance()
    assert isinstance(reading, Reading)
    assert (reading.rows, reading.total) == (300, 400)
    assert state_of(reading) == "reading again, 75 %"
    world.tell("TABLE_SCAN_COMPLETED", **COMPLETED)
    assert isinstance(world.advance(), Read)


def test_a_table_that_is_defined_anew_meanwhile_is_read_once_more_from_a_later_beginning(
    world: World,
) -> None:
    ask(world.files, [BEADS], "a reason")
    first = world.advance()
    world.server.definitions = {BEADS: dataclasses.replace(ONE, files="truncated")}
    world.connect_reads()
    again = world.advance()
    assert isinstance(first, Reading)
    assert isinstance(again, Requested)
    assert again.request.id != first.request.id
    assert again.request.reasons == ("a reason", "it was defined anew while it was read")
    reading = world.advance()
    assert isinstance(reading, Reading)
    assert reading.began == {0: 15, 1: 17}
    assert set(world.server.asked) == {again.request.id}


@pytest.mark.parametrize("status", ["NO_PRIMARY_KEY", "SQL_EXCEPTION", "UNKNOWN_SCHEMA", "SKIPPED"])
def test_a_table_that_the_connector_cannot_read_is_shown_as_different_with_the_reason(
    world: World, status: str
) -> None:
    ask(world.files, [BEADS], "a reason")
    world.advance()
    world.tell("TABLE_SCAN_COMPLETED", **{**COMPLETED, "status": status})
    failed = world.advance()
    assert isinstance(failed, Failed)
    assert is_different(failed)
    assert "tributary snapshot 'counter.counting.beads'" in paragraph(failed)
    assert world.server.asked == {}
    assert isinstance(world.advance(), Failed)


def test_a_request_that_the_connector_ignores_fails_but_not_while_it_reads_another_table(
    world: World,
) -> None:
    ask(world.files, [BEADS], "a reason")
    world.advance()
    world.tell("IN_PROGRESS", **{**IN_PROGRESS, "current_collection_in_progress": "counting.other"})
    assert isinstance(world.advance(), Reading)
    world.tell("COMPLETED")
    failed = world.advance()
    assert isinstance(failed, Failed)
    assert "did not take the request" in failed.problem
    assert world.server.asked == {}


def test_a_snapshot_that_a_job_has_applied_is_over_at_the_next_command_although_it_wants_nothing(
    world: World,
) -> None:
    world.files.write(Read(REQUEST, None, {0: 1}, {0: 5}))
    assert read_again(world.sourced_lake, [], print, print) == ReadAgain((), {})
    assert isinstance(world.files.read()[BEADS], Read)
    world.applied = AppliedSnapshot("id", {}, 0)
    read_again(world.sourced_lake, [], print, print)
    assert world.files.read() == {}


def test_a_command_with_a_limit_of_time_returns_and_the_next_one_goes_on(world: World) -> None:
    ask(world.files, [BEADS], "a reason")
    found = read_again(world.sourced_lake, [], print, print, seconds=0)
    assert found == ReadAgain((BEADS,), {}, unread=(BEADS,))
    assert isinstance(world.files.read()[BEADS], Reading)


def test_rows_that_were_kept_because_of_the_quarantine_are_told(world: World) -> None:
    world.files.write(Read(REQUEST, None, {0: 1}, {0: 5}))
    world.applied = AppliedSnapshot("id", {}, 0, quarantined=2)
    failed = world.advance()
    assert failed is None or isinstance(failed, Failed)
    assert "2 of its events are in quarantine" in paragraph(world.files.read()[BEADS])


def test_the_first_look_takes_note_and_later_ones_ask_for_what_has_changed(world: World) -> None:
    assert world.notice() == ()
    assert world.notice() == ()
    new = TableName("counter", "counting", "new")
    renamed = dataclasses.replace(ONE, columns=(ColumnDefinition("number", "1", "int"),))
    world.server.definitions = {BEADS: renamed, new: dataclasses.replace(ONE, followed=False)}
    found = world.notice()
    assert {each.table: each.reasons for each in found} == {
        BEADS: ("the column id is called number now",),
        new: ("some of its rows can have come before it was followed",),
    }
    assert {type(record) for record in world.files.read().values()} == {Requested}
    assert world.notice() == ()
    # A later change of a table that waits adds its reason.
    world.server.definitions[BEADS] = dataclasses.replace(renamed, identity="2")
    world.notice()
    assert world.files.read()[BEADS].request.reasons == (
        "the column id is called number now",
        "another table has this name now",
    )
    # A table that is gone has no record, and is an orphan in the lake.
    del world.server.definitions[new]
    world.notice(BEADS, new)
    assert set(world.files.read()) == {BEADS}
    assert world.gone == {new}
    # A table that is back is read again, also an empty one: the lake can have rows of the former table.
    world.server.empty = frozenset({new})
    world.server.definitions[new] = ONE
    assert [each.reasons for each in world.notice(BEADS, new)] == [("it was not in its source for a while",)]
    assert world.gone == set()
    assert world.notice(BEADS, new) == ()


def test_a_table_that_its_user_may_no_longer_see_is_no_orphan_and_stays_as_it_was(world: World) -> None:
    new = TableName("counter", "counting", "new")
    world.server.definitions[new] = dataclasses.replace(ONE, followed=False)
    assert world.notice(BEADS, new) == ()
    world.server.covered = frozenset({BEADS})
    del world.server.definitions[new]
    assert world.look(BEADS, new) == Finding(unseen=frozenset({BEADS}))
    assert world.gone == {new}
    # What changed meanwhile is noticed once the user sees the table again.
    world.server.covered = frozenset()
    world.server.definitions[BEADS] = dataclasses.replace(ONE, identity="2")
    (request,) = world.notice(BEADS, new)
    assert request.table == BEADS


def test_a_person_is_told_of_tables_that_the_user_may_no_longer_see(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.notice()
    monkeypatch.setattr(keeper, "known_tables", lambda _: [BEADS])
    monkeypatch.setattr(keeper, "read_table_folders", lambda *_: ())
    world.server.covered = frozenset({BEADS})
    told: list[str] = []
    assert keeper.notice_changes(world.sourced_lake, told.append) == ()
    (said,) = told
    assert said.startswith("The connector's user may no longer read counter.counting.beads, so ")


def test_a_user_that_never_saw_a_table_lets_no_table_become_an_orphan(world: World) -> None:
    world.server.definitions[RUST] = ONE
    world.server.covered = frozenset({BEADS})
    assert world.look(BEADS, RUST) == Finding(unseen=frozenset({BEADS}))
    assert world.gone == frozenset()


def test_a_table_that_another_connector_sends_from_elsewhere_is_no_orphan_and_nobody_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.events = Events(topic_prefix="theirs")
    monkeypatch.setattr(proof, "read_table_names", lambda *_: [BEADS])
    world.notice(RUST)
    monkeypatch.setattr(keeper, "known_tables", lambda _: [RUST])
    monkeypatch.setattr(keeper, "read_table_folders", lambda *_: ())
    told: list[str] = []
    decisions = OrphanFiles(world.files.filesystem, world.link.lake.names, "quarantine")
    removed = DecidedOrphan(RUST, "removed", None, "2026-01-02T03:04:05+00:00")
    # S3 needs no folders, and a disk does.
    world.files.filesystem.create_dir(f"quarantine/{ORPHANS_FOLDER}/counter/counting")
    decisions.write(removed)
    assert keeper.notice_changes(world.sourced_lake, told.append) == ()
    assert (told, world.gone) == ([], frozenset())
    # What somebody has removed does not come back by itself.
    assert decisions.read() == {RUST: removed}
    # A table of the source's own connector is judged by its database.
    del world.server.definitions[BEADS]
    world.look(BEADS, RUST)
    assert world.gone == {BEADS}


def test_a_left_out_table_that_the_user_may_no_longer_see_stays_left_out(world: World) -> None:
    world.notice()
    world.server.has_rust = True
    world.server.definitions[RUST] = ONE
    world.look(RUST)
    world.server.covered = frozenset({RUST})
    assert world.look(RUST).unseen == {RUST}
    assert (world.gone, set(read_reasons(world.files, world.link.lake))) == (frozenset(), {RUST})


def test_a_new_table_without_rows_or_that_was_always_followed_is_not_read_again(world: World) -> None:
    world.notice()
    empty, followed = TableName("counter", "counting", "empty"), TableName("counter", "counting", "followed")
    world.server.empty = frozenset({empty})
    world.server.definitions |= {empty: dataclasses.replace(ONE, followed=False), followed: ONE}
    assert world.notice() == ()
    assert world.notice() == ()
    assert [said for said in world.server.said if "empty?" in said] == [f"is {empty} empty?"]


def test_a_left_out_table_is_read_once_it_comes_in(world: World) -> None:
    world.server.definitions = {BEADS: dataclasses.replace(ONE, followed=False)}
    left_out = dataclasses.replace(world.link, left_out={BEADS: "rusty"})
    assert notice(left_out, world.session, world.files, []) == Finding()
    assert [each.table for each in world.notice()] == [BEADS]


RUST = TableName("counter", "counting", "rust")
WHY = "counter.counting.rust: the beads do not slide."
BROUGHT_LATER = ("it was left out until now",)


def test_a_new_table_that_cannot_be_taken_is_left_out_until_it_is_mended_and_read_again(world: World) -> None:
    world.notice()
    world.server.has_rust = True
    world.server.definitions[RUST] = ONE
    found = world.look(RUST)
    assert found == Finding(left_out={RUST: LeftOutNote((WHY,), ("Oil it.",))})
    assert world.look(RUST) == Finding(), "it is told once"
    assert read_reasons(world.files, world.link.lake) == {RUST: WHY}
    assert world.seen == SourceLook("counter", frozenset(map(str, (BEADS, RUST))), frozenset({str(RUST)}))
    world.server.has_rust = False
    (request,) = world.notice(RUST)
    assert (request.table, request.reasons) == (RUST, BROUGHT_LATER)
    assert read_reasons(world.files, world.link.lake) == {}
    assert world.seen.held_back == {str(RUST)}, "its topic still begins with its former events"
    world.files.write(Read(request, None, {0: 1}, {0: 5}))
    assert world.notice(RUST) == ()
    assert world.seen.held_back == frozenset()


def test_a_left_out_table_that_is_dropped_is_an_orphan_of_which_no_table_is_made(world: World) -> None:
    world.notice()
    world.server.has_rust = True
    world.server.definitions[RUST] = ONE
    world.look(RUST)
    del world.server.definitions[RUST]
    world.look(RUST)
    assert world.gone == {RUST}
    assert world.seen.held_back == {str(RUST)}
    world.look()
    assert world.seen.held_back == frozenset(), "without a topic, nothing is left of it"


def test_a_table_that_its_connector_does_not_read_is_left_out_until_it_does(world: World) -> None:
    world.notice()
    world.server.definitions[RUST] = ONE
    unread = dataclasses.replace(world.link, read_config=lambda: {READ_TABLES: r"counting\.beads"})
    found = notice(unread, world.session, world.files, [])
    assert found == Finding(unread=frozenset({RUST}))
    assert "does not read it" in read_reasons(world.files, world.link.lake)[RUST]
    assert world.seen.held_back == {str(RUST)}
    (request,) = world.notice()
    assert (request.table, request.reasons) == (RUST, BROUGHT_LATER)


def test_a_table_that_a_start_left_out_is_to_be_read_once_it_is_mended(world: World) -> None:
    at_start = {RUST: "table counter.counting.rust: it was rusty"}
    link = dataclasses.replace(
        world.link, left_out=at_start, read_config=lambda: {READ_TABLES: r"counting\.beads"}
    )
    world.server.has_rust = True
    world.server.definitions[RUST] = ONE
    assert notice(link, world.session, world.files, []) == Finding(), "the first look only takes note"
    assert notice(link, world.session, world.files, []) == Finding()
    assert read_reasons(world.files, link.lake) == {RUST: WHY}
    world.server.has_rust = False
    assert notice(link, world.session, world.files, []) == Finding(unread=frozenset({RUST}))


def test_a_table_for_which_its_database_is_not_prepared_is_left_out_where_that_can_be_mended(
    world: World,
) -> None:
    world.notice()
    world.server.definitions[RUST] = ONE
    here = dataclasses.replace(world.link, renew=lambda: None)
    found = notice(here, world.session, world.files, [])
    assert found == Finding(unread=frozenset({RUST}))
    assert "no beam" in read_reasons(world.files, here.lake)[RUST]
    note = world.files.read_left_out(here.lake)[RUST]
    assert (len(note.reasons), note.remedies) == (2, ("", ""))
    world.server.is_prepared = True
    (request,) = notice(here, world.session, world.files, []).requests
    assert (request.table, request.reasons) == (RUST, BROUGHT_LATER)


def test_a_later_table_that_is_mended_is_read_by_a_connector_that_knows_it_as_it_is_now(world: World) -> None:
    world.server.is_prepared = True
    here = dataclasses.replace(world.link, renew=lambda: None)
    notice(here, world.session, world.files, [])
    world.server.definitions[RUST] = ONE
    world.server.has_rust = True
    assert notice(here, world.session, world.files, []).unread == frozenset()
    world.server.has_rust = False
    assert notice(here, world.session, world.files, []) == Finding(unread=frozenset({RUST}))
    (request,) = notice(here, world.session, world.files, []).requests
    assert (request.table, request.reasons) == (RUST, BROUGHT_LATER)


def test_a_look_renews_the_connector_and_asks_for_what_it_then_reads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("known_tables", "read_table_folders"):
        monkeypatch.setattr(keeper, name, lambda *_: ())
    world.notice()
    world.server.definitions[RUST] = ONE
    tables, told = [r"counting\.beads"], list[str]()

    def renew() -> None:
        tables[:] = [r"counting\..*"]
        world.server.is_prepared = True

    def linked() -> tuple[SourceLink, ...]:
        config = {READ_TABLES: tables[0]}
        return (dataclasses.replace(world.link, read_config=lambda: config, renew=renew),)

    lake = world.sourced_lake
    found = keeper.notice_changes(
        cast(SourcedLake, SimpleNamespace(**{**vars(lake), "links": linked})), told.append
    )
    assert [request.table for request in found] == [RUST]
    assert told[0] == f"The connector of counter is started again, because it has to read {RUST} now."
    assert "left out until now" in told[1]


def test_a_renewal_that_fails_is_told_and_tried_again_later_or_for_other_tables(world: World) -> None:
    now, told, tries = [0.0], list[str](), list[float]()

    def renew() -> None:
        tries.append(now[0])
        raise TributaryError("an administrator has to prepare the database")

    link = dataclasses.replace(world.link, renew=renew)
    renewals = Renewals(told.append, (TributaryError,), lambda: now[0])
    assert not renewals.renew(link, frozenset({RUST}))
    assert "an administrator has to prepare" in told[-1]
    assert not renewals.renew(link, frozenset({RUST}))
    assert not renewals.renew(link, frozenset())
    assert tries == [0.0]
    renewals.renew(link, frozenset({RUST, BEADS}))
    now[0] += SECONDS_BETWEEN_TRIES
    renewals.renew(link, frozenset({RUST, BEADS}))
    assert tries == [0.0, 0.0, SECONDS_BETWEEN_TRIES]


def test_the_check_of_tables_costs_nothing_as_long_as_there_is_no_new_one(world: World) -> None:
    world.notice()
    world.server.said.clear()
    world.notice()
    assert not [said for said in world.server.said if "checks" in said]
    world.server.definitions[TableName("counter", "counting", "new")] = ONE
    world.notice()
    world.notice()
    assert len([said for said in world.server.said if "checks" in said]) == 1


def test_a_table_of_the_lake_that_a_start_leaves_out_is_not_held_back(world: World) -> None:
    left_out = dataclasses.replace(world.link, left_out={BEADS: "rusty"})
    notice(left_out, world.session, world.files, [BEADS], [BEADS])
    assert world.seen == SourceLook("counter", frozenset({str(BEADS)}))
    assert world.gone == frozenset()
    (request,) = world.notice(BEADS)
    assert request.reasons == BROUGHT_LATER


def test_a_manual_table_is_only_shown(world: World) -> None:
    lake = lake_with(f'[table."{BEADS}"]\nrepair = "manual"\n')
    link = dataclasses.replace(world.link, lake=lake)
    notice(link, world.session, world.files, [])
    world.server.definitions = {BEADS: dataclasses.replace(ONE, identity="2")}
    notice(link, world.session, world.files, [])
    record = world.advance()
    assert isinstance(record, Noticed)
    assert "another table has this name now. Run tributary snapshot" in paragraph(record)
    assert world.server.asked == {}


def test_a_source_that_is_read_anew_has_no_records(world: World) -> None:
    world.notice()
    ask(world.files, [BEADS], "a reason")
    world.files.forget("counter")
    assert world.files.read() == {}
    assert world.files.read_look("counter") is None


@pytest.mark.parametrize(
    "record",
    [
        Noticed(REQUEST),
        Requested(dataclasses.replace(REQUEST, condition="tableoid = 5")),
        Reading(REQUEST, None, {}, 0, "f"),
        Reading(REQUEST, "t", {0: 5, 10: 6}, 7, "f", 1, 2),
        Read(REQUEST, "t", {0: 5}, {0: 6, 1: 1}),
        Failed(REQUEST, "no"),
    ],
)
def test_a_record_survives_its_file(record: Record) -> None:
    assert from_json(to_json(record)) == record


def test_messages_about_other_tables_and_other_snapshots_say_nothing() -> None:
    other = {"current_collection_in_progress": "counting.other", "total_rows": "9", "total_chunks": "1"}
    told = [Notification("IN_PROGRESS", other), Notification("COMPLETED", {}), Notification("STARTED", {})]
    assert progress_of(BEADS, told) == progress_of(BEADS, [])
    assert Notification.of({"aggregate_type": "Initial Snapshot", "type": "STARTED"}) is None

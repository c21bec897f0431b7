"""A round of verification asks each table that can be asked, and keeps what is known of all the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyarrow.fs import LocalFileSystem, S3FileSystem, SubTreeFileSystem

from connectors.engines.definitions import TableDefinition
from connectors.engines.engine import DatabaseTable
from connectors.engines.registry import AnyEngine
from spark_app.run.outcome import OUTCOME_FILE, Outcome
from tributary.api.lake_files import LakeFiles
from tributary.api.open_lake import OpenLake
from tributary.contract.lake import Lake, parse_lake
from tributary.contract.online_snapshot import RECORDS_FOLDER as SNAPSHOTS
from tributary.contract.online_snapshot import Requested
from tributary.contract.table_name import TableName
from tributary.local.state import StateFolder
from tributary.operations.kafka_cluster import KafkaCluster
from tributary.operations.keeping import alone
from tributary.operations.reconcile import proof
from tributary.operations.reconcile.proof import SourceLink
from tributary.operations.snapshots.keeper import record_files
from tributary.operations.snapshots.silent import ask
from tributary.operations.sourced_lake import SeveralSourcesFailed
from tributary.operations.verify import rounds
from tributary.operations.verify.record import RECORDS_FOLDER as VERIFICATIONS
from tributary.operations.verify.record import CheckedPart, FoundRow, Verification
from tributary.operations.verify.rounds import AnotherVerifies, VerifyKeeper, Wanted, verification_files
from tributary.operations.workspace import Workspace

LAKE = """
[lake]
name = "shop"
[source.web]
engine = "postgres"
database = "shop"
tables = ["public.*"]
[verify]
interval = "1m"
repair = true
"""
ORDERS, USERS, ITEMS = (TableName("web", "public", name) for name in ("orders", "users", "items"))
EQUAL = Verification(ORDERS, parts=(CheckedPart(rows=3, equal_us=7),), looked_us=7)
DIFFERS = Verification(
    ORDERS,
    parts=(CheckedPart(rows=3, differences=2, found=(FoundRow({"id": "1"}, "missing", {}),)),),
    looked_us=7,
)


@dataclass(frozen=True)
class Files:
    """The lake's buckets as folders."""

    root: Path

    @property
    def filesystem(self) -> S3FileSystem:
        return cast(S3FileSystem, SubTreeFileSystem(str(self.root), LocalFileSystem()))

    @property
    def hudi_options(self) -> dict[str, str]:
        return {}


@dataclass(frozen=True)
class Database:
    """What a round asks an engine, apart from rows."""

    has_row: bool = True

    def snapshot(self, _session: object) -> AbstractContextManager[None]:
        return nullcontext()

    def has_rows(self, _session: object, _table: TableName) -> bool:
        return self.has_row

    def unseen(
        self, _session: object, missing: Mapping[TableName, TableDefinition | None]
    ) -> frozenset[TableName]:
        return frozenset(table for table, known in missing.items() if known is not None)


@dataclass(frozen=True)
class Link(SourceLink):
    """A source whose sessions are nothing."""

    database: Database = field(default_factory=Database)

    @property
    def engine(self) -> AnyEngine:
        return cast(AnyEngine, self.database)


@dataclass
class Round:
    """A lake in folders. `found` gives a table's verification, or its error, at each look."""

    workspace: Workspace
    monkeypatch: pytest.MonkeyPatch
    root: Path
    told: list[str] = field(default_factory=list)
    looks: list[tuple[TableName, Verification | None]] = field(default_factory=list)
    found: Callable[[TableName], Verification] = lambda name: replace(EQUAL, table=name)

    def keeper(self) -> VerifyKeeper:
        return VerifyKeeper(self.workspace, self.told.append)

    def has(self, *silver: TableName, source: tuple[TableName, ...] | None = None, **link: Any) -> None:
        """Give the lake these tables, and the source the same ones or others."""
        names = self.workspace.lake.names
        for table in silver:
            timeline = self.root / names.silver_bucket / names.table_path(table) / ".hoodie"
            timeline.mkdir(parents=True)
            (timeline / "20260101000000000.deltacommit").write_text("{}")
        lake = self.workspace.lake
        tables = {name: DatabaseTable(name.schema, name.table, (), ("id",)) for name in source or silver}
        made = Link(
            lake,
            lake.source("web"),
            nullcontext,
            KafkaCluster(""),
            cast(LakeFiles, Files(self.root)),
            lake.names.silver_bucket,
            dict,
            **link,
        )
        self.monkeypatch.setattr(Workspace, "links", lambda _: (made,))
        self.monkeypatch.setattr(rounds, "read_source_tables", lambda *_: tables)
        self.monkeypatch.setattr(rounds._Table, "sides", lambda table, *_: (table, None))
        self.monkeypatch.setattr(rounds, "verify_table", self._verify)

    def _verify(self, table: Any, before: Verification | None, _rows: int | None) -> Verification:
        self.looks.append((table.name, before))
        return self.found(table.name)


@pytest.fixture
def a_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Round:
    return a_round_of(parse_lake(LAKE), tmp_path, monkeypatch)


def a_round_of(lake: Lake, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Round:
    state, root = StateFolder(folder / "state"), folder / "buckets"
    state.create()
    # S3 needs no folders, and a disk does.
    for records in (VERIFICATIONS, SNAPSHOTS):
        (root / lake.names.quarantine_bucket / records / "web" / "public").mkdir(parents=True)
    (root / lake.names.silver_bucket).mkdir()
    names, files = lake.names, cast(LakeFiles, Files(root))
    workspace = Workspace(folder / "lake.toml", lake, state)
    opened = OpenLake(lake, names.silver_bucket, names.quarantine_bucket, names.bronze_bucket, files)
    workspace.__dict__["open_lake"] = opened
    return Round(workspace, monkeypatch, root)


def problems(found: Mapping[TableName, Verification]) -> dict[str, str | None]:
    return {name.table: one.problem for name, one in found.items()}


def test_a_round_looks_at_every_table_and_the_next_one_knows_what_it_found(a_round: Round) -> None:
    a_round.has(ORDERS, USERS)
    first = a_round.keeper().step()
    assert {name: one.rows for name, one in first.items()} == {ORDERS: 3, USERS: 3}
    assert a_round.looks == [(ORDERS, None), (USERS, None)]
    a_round.looks.clear()
    a_round.keeper().step(Wanted([USERS], None))
    assert a_round.looks == [(USERS, first[USERS])]


def test_what_was_looked_at_longest_ago_comes_first_and_a_round_without_time_begins_nothing(
    a_round: Round,
) -> None:
    a_round.has(ORDERS, USERS, ITEMS)
    files = verification_files(a_round.workspace)
    files.write(replace(EQUAL, table=ITEMS, looked_us=2))
    files.write(replace(EQUAL, table=ORDERS, looked_us=1))
    assert list(a_round.keeper().step()) == [USERS, ORDERS, ITEMS]
    a_round.looks.clear()
    assert a_round.keeper().step(Wanted(None, 1_000, seconds=0)) == {}
    assert a_round.looks == []
    assert set(a_round.keeper().known()) == {ORDERS, USERS, ITEMS}


def test_a_table_that_the_user_may_no_longer_see_keeps_what_was_known_and_says_so(a_round: Round) -> None:
    known = TableDefinition("1", "a", ())
    a_round.has(USERS, read_known=lambda: {ORDERS: known, USERS: known})
    verification_files(a_round.workspace).write(EQUAL)
    found = a_round.keeper().step()
    assert problems(found) == {ORDERS.table: "the connector's user may not read it", USERS.table: None}
    assert found[ORDERS].parts == EQUAL.parts
    assert a_round.keeper().known().keys() == found.keys()


def test_a_table_that_another_connector_sends_says_so_although_nobody_has_looked_at_it_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = parse_lake(f'{LAKE}\n[source.web.events]\ntopic_prefix = "theirs"\n')
    a_round = a_round_of(lake, tmp_path, monkeypatch)
    a_round.has(ORDERS, USERS, source=(USERS,))
    monkeypatch.setattr(proof, "read_table_names", lambda *_: ())
    found = a_round.keeper().step()
    assert found[USERS].problem is None
    assert str(found[ORDERS].problem).startswith("another connector sends it (topic_prefix theirs)")


def test_a_source_that_cannot_be_verified_fails_the_round_but_does_not_stop_the_others(
    a_round: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_round.has(ORDERS)
    (here,) = a_round.workspace.links()

    def no_connection() -> Any:
        raise OSError("no connection")

    away = replace(here, connect=no_connection)
    monkeypatch.setattr(Workspace, "links", lambda _: (away, here, away))
    with pytest.raises(SeveralSourcesFailed, match="no connection; no connection"):
        a_round.keeper().step()
    assert set(a_round.keeper().known()) == {ORDERS}
    monkeypatch.setattr(Workspace, "links", lambda _: (away, here))
    with pytest.raises(OSError, match="no connection"):
        a_round.keeper().step()


def test_what_is_known_of_a_table_that_its_source_lost_is_forgotten(a_round: Round) -> None:
    files = verification_files(a_round.workspace)
    files.write(replace(EQUAL, table=ITEMS))
    a_round.has(ORDERS)
    a_round.keeper().step()
    assert set(files.read()) == {ORDERS}


def test_tables_that_cannot_follow_now_keep_what_was_known_and_say_why(a_round: Round) -> None:
    lake = a_round.workspace.lake
    blocked, read_again = ITEMS, TableName("web", "public", "carts")
    outcomes = a_round.root / lake.names.quarantine_bucket / lake.names.table_path(blocked)
    outcomes.mkdir(parents=True)
    outcome = Outcome("blocked", "2026-01-02T03:04:05", what="Its topic is gone")
    (outcomes / OUTCOME_FILE).write_text(outcome.to_json())
    ask(record_files(a_round.workspace), [read_again], "2 rows differed")
    verification_files(a_round.workspace).write(EQUAL)
    a_round.has(
        ORDERS,
        USERS,
        blocked,
        read_again,
        left_out={USERS: "no key"},
        read_paused=lambda: frozenset({ORDERS}),
    )
    found = a_round.keeper().step()
    assert problems(found) == {
        "orders": "it is paused, so it is behind its source",
        "users": "it is left out: no key",
        "items": "it is blocked, so it is behind its source",
        "carts": "it is being read again",
    }
    assert found[ORDERS].equal_us == EQUAL.equal_us
    assert a_round.looks == []


@pytest.mark.parametrize(
    ("has_row", "problem", "equal"), [(True, "the lake does not have it yet", False), (False, None, True)]
)
def test_a_table_that_the_lake_lacks_equals_its_source_only_without_rows(
    a_round: Round, has_row: bool, problem: str | None, equal: bool
) -> None:
    a_round.has(source=(ORDERS,), database=Database(has_row))
    (found,) = a_round.keeper().step().values()
    assert (found.problem, found.equal_us is not None) == (problem, equal)


def test_a_table_whose_files_go_while_they_are_read_is_read_again_and_then_told(a_round: Round) -> None:
    a_round.has(ORDERS)
    a_round.found = raising(pa.ArrowInvalid("a file is gone"))
    (found,) = a_round.keeper().step().values()
    assert found.problem == "it cannot be read now: a file is gone"
    assert len(a_round.looks) == 3


def test_differences_are_told_with_their_cause_and_repaired_once(a_round: Round) -> None:
    a_round.has(ORDERS)
    a_round.found = lambda _: DIFFERS
    found = a_round.keeper().step()[ORDERS]
    assert "missing in the lake" in (found.cause or "")
    assert found.repair_us is not None
    files = record_files(a_round.workspace)
    request = files.read()[ORDERS]
    assert isinstance(request, Requested)
    assert request.request.reasons == ("2 rows differed",)
    files.remove(ORDERS)
    a_round.found = lambda _: replace(DIFFERS, repair_us=found.repair_us)
    a_round.keeper().step()
    assert files.read() == {}, "a table that still differs after it was read again needs a person"
    a_round.found = lambda _: EQUAL
    assert a_round.keeper().step()[ORDERS].cause is None


@pytest.mark.parametrize(
    "lake", [LAKE.replace("repair = true", "repair = false"), f'{LAKE}[defaults]\nrepair = "manual"\n']
)
def test_differences_are_left_to_a_person_if_the_lake_file_says_so(
    lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_round = a_round_of(parse_lake(lake), tmp_path, monkeypatch)
    a_round.has(ORDERS)
    a_round.found = lambda _: DIFFERS
    assert a_round.keeper().step()[ORDERS].repair_us is None
    assert record_files(a_round.workspace).read() == {}


def test_two_processes_never_verify_at_the_same_time(a_round: Round) -> None:
    a_round.has(ORDERS)
    with alone(a_round.workspace.state, "verify"), pytest.raises(AnotherVerifies):
        a_round.keeper().step()


def test_a_failure_is_told_once_and_tried_again(a_round: Round, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "_SECONDS_AFTER_A_FAILURE", 0)
    a_round.has(ORDERS)
    keeper, left = a_round.keeper(), [OSError("no S3"), OSError("no S3"), None]

    def links(_: Workspace) -> tuple[SourceLink, ...]:
        error = left.pop(0)
        if error is not None:
            raise error
        keeper.stop.set()
        return ()

    monkeypatch.setattr(Workspace, "links", links)
    keeper.run()
    assert left == []
    assert a_round.told == ["The lake cannot be verified now, and is again later: no S3"]


def test_a_running_keeper_tells_differences_until_it_is_stopped(a_round: Round) -> None:
    a_round.has(ORDERS)
    was_told = threading.Event()
    a_round.found = lambda _: DIFFERS

    def tell(text: str) -> None:
        a_round.told.append(text)
        was_told.set()

    keeper = VerifyKeeper(a_round.workspace, tell)
    with keeper.running():
        assert was_told.wait(30)
    assert keeper.stop.is_set()
    assert str(ORDERS) in a_round.told[0]


def test_nothing_runs_without_the_section_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = parse_lake(LAKE.partition("[verify]")[0])
    assert lake.verify is None
    a_round = a_round_of(lake, tmp_path, monkeypatch)
    a_round.has(ORDERS)
    with a_round.keeper().running():
        pass
    assert a_round.looks == []
    assert a_round.keeper().rules.interval > timedelta()


def raising(error: Exception) -> Callable[[TableName], Verification]:
    def found(_: TableName) -> Verification:
        raise error

    return found

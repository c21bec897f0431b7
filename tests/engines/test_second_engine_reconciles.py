"""Reconciling reads and compares the rows of a second engine like the rows of the first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from connectors.engines.definitions import TableDefinition
from connectors.engines.engine import RowsUnreadable
from tests.engines.abacus import TABLE, AbacusServer
from tests.engines.lakes import BEADS, lake_with, servers_of
from tributary.api.lake_files import LocalFiles
from tributary.api.tables import LakeTable
from tributary.contract.source import Events
from tributary.contract.table_name import TableName
from tributary.local.databases import SourceDatabase
from tributary.operations.kafka_cluster import KafkaCluster
from tributary.operations.reconcile import proof
from tributary.operations.reconcile.barrier import LakeBehind, Patience
from tributary.operations.reconcile.comparison import Kind
from tributary.operations.reconcile.proof import SourceLink, reconcile

pytestmark = pytest.mark.usefixtures("abacus")


ROWS: list[dict[str, Any]] = [
    {"id": 1, "color": "red", "moved_at": "01:02:03.000000", "sound": "click"},
    {"id": 2, "color": None, "moved_at": "23:59:59.999999", "sound": None},
]
LAKE = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "color": ["red", None],
        "moved_at": ["01:02:03.000000", "23:59:59.999999"],
        "_op": ["r", "r"],
    }
)


@pytest.fixture
def link(tmp_path: Path) -> SourceLink:
    lake = lake_with()
    state = servers_of(lake, tmp_path)
    database = SourceDatabase(lake, lake.source("counter"), state.state, state.settings)
    files = LocalFiles("", "", "")
    return SourceLink(
        lake,
        database.source,
        database.connect_for_replication,
        KafkaCluster(""),
        files,
        "silver",
        lambda: None,
    )


def holds(monkeypatch: pytest.MonkeyPatch, lake: pa.Table) -> None:
    """Let the lake hold this table of beads, and let Kafka hold nothing that the lake has not applied."""
    silver = (LakeTable(BEADS, "silver/beads"),)
    monkeypatch.setattr(proof, "read_silver_tables", lambda *_: silver)
    monkeypatch.setattr(proof, "read_table", lambda *_: lake)
    monkeypatch.setattr(proof, "read_last_commit", lambda *_: None)
    monkeypatch.setattr(LocalFiles, "filesystem", None)

    def ends(_: KafkaCluster, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        assert list(topics) == ["shop.counter.counting.beads"]
        return {topic: {0: 0} for topic in topics}

    monkeypatch.setattr(proof, "read_topic_ends", ends)


def test_a_second_engine_s_rows_are_compared_in_its_types_forms(
    link: SourceLink, abacus: AbacusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds(monkeypatch, LAKE)
    abacus.rows, abacus.lags = ROWS, 1
    told: list[str] = []
    found = reconcile(link, Patience.of(30, told.append))
    assert found.identical
    assert [table.name for table in found.tables] == [BEADS]
    assert found.rows == 2
    (table,) = found.tables
    assert table.pairing is not None
    assert table.pairing.uncompared == ("sound",)
    assert "waiting for the beads: 0 beads" in told
    order = ["snapshot begins", "counter-shop marks beam-of-shop-counter", "snapshot ends"]
    assert [said for said in abacus.said if said in order] == order


def test_a_row_that_differs_is_found_and_shown(
    link: SourceLink, abacus: AbacusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds(monkeypatch, LAKE)
    abacus.rows = [{**ROWS[0], "color": "green"}, {**ROWS[1], "id": 3}]
    found = reconcile(link, Patience.of(30))
    assert not found.identical
    (table,) = found.tables
    assert {
        one.key: (one.kind, [cell.column for cell in one.cells]) for one in table.findings.differences
    } == {
        (1,): (Kind.CHANGED, ["color"]),
        (2,): (Kind.EXTRA, []),
        (3,): (Kind.MISSING, []),
    }


def test_a_type_that_does_not_fit_the_lake_s_is_a_mismatch_in_the_engine_s_words(
    link: SourceLink, abacus: AbacusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds(monkeypatch, LAKE.set_column(1, "color", pa.array([1.5, 2.5])))
    abacus.rows = ROWS
    (table,) = reconcile(link, Patience.of(30)).tables
    assert table.pairing is not None
    assert table.pairing.mismatched == {"color": "word in the database is double in the lake"}
    assert not table.identical


@pytest.mark.parametrize("failure", [RowsUnreadable("no"), duckdb.BinderException("no")])
def test_a_table_that_cannot_be_read_does_not_hide_the_others(
    link: SourceLink, abacus: AbacusServer, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    holds(monkeypatch, LAKE)
    abacus.rows = ROWS
    other = TableName("counter", "counting", "a_table_before")
    monkeypatch.setattr(proof, "read_source_tables", lambda *_: {BEADS: TABLE, other: TABLE})
    monkeypatch.setattr(proof, "read_topic_ends", lambda _, topics: {topic: {0: 0} for topic in topics})
    silver = (LakeTable(other, "silver/other"), LakeTable(BEADS, "silver/beads"))
    monkeypatch.setattr(proof, "read_silver_tables", lambda *_: silver)

    def read(_: object, table: LakeTable) -> pa.Table:
        if table.name == other:
            raise failure
        return LAKE

    monkeypatch.setattr(proof, "read_table", read)
    failed, well = reconcile(link, Patience.of(30)).tables
    assert (failed.name, failed.identical) == (other, False)
    assert "cannot be read in comparable form: no" in (failed.problem or "")
    assert (well.name, well.identical) == (BEADS, True)


def test_a_table_that_is_left_out_is_reported_with_its_reason_and_not_waited_for(
    link: SourceLink, abacus: AbacusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds(monkeypatch, LAKE)
    abacus.rows = ROWS
    rust = TableName("counter", "counting", "rust")
    monkeypatch.setattr(proof, "read_source_tables", lambda *_: {BEADS: TABLE, rust: TABLE})
    found = reconcile(replace(link, left_out={rust: "It does not slide."}), Patience.of(30))
    well, left_out = found.tables
    assert well.identical
    assert (left_out.problem, left_out.identical) == ("it is left out: It does not slide.", False)


def test_a_wait_that_ends_in_vain_names_its_condition(
    link: SourceLink, abacus: AbacusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds(monkeypatch, LAKE)
    abacus.lags = 1_000
    with pytest.raises(LakeBehind, match=r"waiting for the beads.*999 beads"):
        reconcile(link, Patience.of(0))


def test_a_table_that_the_user_may_no_longer_see_is_not_identical(
    link: SourceLink, abacus: AbacusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "read_silver_tables", lambda *_: ())
    monkeypatch.setattr(proof, "read_topic_ends", lambda *_: {})
    monkeypatch.setattr(LocalFiles, "filesystem", None)
    excluded = TableName("counter", "hidden", "beads")
    abacus.covered = frozenset({BEADS, excluded})
    known = TableDefinition("1", "a", ())
    link = replace(link, read_known=lambda: {BEADS: known, excluded: known})
    found = reconcile(link, Patience.of(30))
    assert not found.identical
    assert {table.name: table.problem for table in found.tables} == {
        BEADS: "the connector's user may not read it"
    }


def test_a_table_that_another_connector_sends_from_elsewhere_is_not_identical(
    link: SourceLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "read_silver_tables", lambda *_: (SimpleNamespace(name=BEADS),))
    monkeypatch.setattr(proof, "read_topic_ends", lambda *_: {})
    monkeypatch.setattr(proof, "read_source_tables", lambda *_: {})
    monkeypatch.setattr(LocalFiles, "filesystem", None)
    own: list[TableName] = []
    monkeypatch.setattr(proof, "read_table_names", lambda *_: own)
    events = Events(topic_prefix="theirs")
    link = replace(link, source=link.source.model_copy(update={"events": events}))
    found = reconcile(link, Patience.of(30))
    assert not found.identical
    (table,) = found.tables
    assert (table.name, str(table.problem)[:47]) == (
        BEADS,
        "another connector sends it (topic_prefix theirs",
    )
    # A table that Tributary's own connector has sent is judged by the database, which has dropped it.
    own.append(BEADS)
    assert reconcile(link, Patience.of(30)).tables == ()

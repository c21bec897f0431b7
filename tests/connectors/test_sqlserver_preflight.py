"""The preflight for SQL Server: from facts to findings, all faults at once."""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa
import pytest

from connectors.engines.definitions import silent_changes
from connectors.engines.engine import Checked
from connectors.engines.forms import BOOLEAN, BYTES, INTEGER, NUMBER
from connectors.engines.sqlserver import progress
from connectors.engines.sqlserver.capture import CaptureInstance, Captures, captures_of
from connectors.engines.sqlserver.catalog import ColumnFacts, ServerFacts, TableFacts
from connectors.engines.sqlserver.definitions import definitions_of
from connectors.engines.sqlserver.preflight import (
    SqlServerNotReady,
    judge_existing,
    judge_preparation,
    judge_server,
    judge_tables,
)
from connectors.engines.sqlserver.progress import (
    lsn_of,
    shown,
    snapshot_problem,
    steps_to_kafka,
    unread_until,
)
from connectors.engines.sqlserver.reading import batch_of, tables_of
from connectors.engines.sqlserver.session import number_of, told_by
from tributary.contract.engines.sqlserver import SqlServerSource
from tributary.contract.lake import Lake, parse_lake
from tributary.contract.table_name import TableName

SERVER = ServerFacts(
    version="16.0.4165.4",
    engine_edition=2,
    edition="Standard Edition (64-bit)",
    agent_runs=True,
    seconds_behind=60,
    retention_minutes=4320,
    keeps_updates=False,
)
COLUMNS = (
    ColumnFacts("id", 1, "int", is_nullable=False),
    ColumnFacts("name", 2, "nvarchar"),
    ColumnFacts("at", 3, "datetime2", scale=7, is_nullable=False),
)
NAMES = tuple(column.name for column in COLUMNS)
OURS = CaptureInstance("tributary_100_aaaaaaaa", 900, NAMES)
THEIRS = CaptureInstance("dbo_orders", 800, NAMES)
ORDERS = TableFacts(
    "dbo",
    "orders",
    100,
    COLUMNS,
    primary_key=("id",),
    unique_keys=(frozenset({"id"}),),
    captures=Captures((OURS,), OURS.name, NAMES),
)


def lake_of(more: str = "", tables: str = '["dbo.*"]') -> Lake:
    return parse_lake(
        '[lake]\nname = "shop"\n[source.erp]\nengine = "sqlserver"\ndatabase = "ERP"\n'
        f'tables = {tables}\n[source.erp.connection]\nhost = "db"\npassword_env = "P"\n{more}'
    )


def source_of(lake: Lake) -> SqlServerSource:
    source = lake.source("erp")
    assert isinstance(source, SqlServerSource)
    return source


def judged(*tables: TableFacts, more: str = "", patterns: str = '["dbo.*"]') -> Checked:
    lake = lake_of(more, patterns)
    return judge_tables(lake, source_of(lake), tables or (ORDERS,))


def problems_of(table: TableFacts, more: str = "") -> list[str]:
    return [str(problem) for each in judged(table, more=more).left_out for problem in each.problems]


def test_a_server_that_is_ready_has_no_findings() -> None:
    assert judge_server(source_of(lake_of()), SERVER, will_be_prepared=False) == ()
    assert judged() == Checked()


def test_later_tables_are_judged_although_a_pattern_has_lost_its_table() -> None:
    lost = lake_of(tables='["dbo.*", "sales.dropped"]')
    keyless = replace(ORDERS, primary_key=(), unique_keys=())
    with pytest.raises(SqlServerNotReady, match=r"sales\.dropped"):
        judge_tables(lost, source_of(lost), [keyless])
    (left_out,) = judge_existing(lost, source_of(lost), [keyless])
    assert left_out.table.table == "orders"


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"engine_edition": 4, "edition": "Express Edition"}, "found the Express edition"),
        ({"edition": "Web Edition (64-bit)"}, "found Web Edition"),
        ({"engine_edition": 5, "edition": "SQL Azure"}, "found Azure SQL Database"),
        ({"version": "13.0.7000.1"}, "found version 13.0.7000.1, expected SQL Server 2017"),
        ({"agent_runs": False}, "SQL Server Agent does not run"),
        ({"is_read_only": True}, "read-only, such as a secondary replica"),
        ({"is_cdc_enabled": False}, "change data capture is off"),
        ({"seconds_behind": 3600}, "the capture job has recorded nothing for 60 minutes"),
        ({"snapshot_isolation": False}, "does not allow snapshot isolation"),
    ],
)
def test_a_fault_of_the_server_is_found_with_its_remedy(facts: Mapping[str, Any], words: str) -> None:
    with pytest.raises(SqlServerNotReady) as found:
        judge_server(source_of(lake_of()), replace(SERVER, **facts), will_be_prepared=False)
    assert words in str(found.value)
    assert found.value.remedies


def test_all_faults_of_a_server_are_told_at_once() -> None:
    faulty = replace(SERVER, version="12.0.1", engine_edition=4, agent_runs=False, is_cdc_enabled=False)
    with pytest.raises(SqlServerNotReady) as found:
        judge_server(source_of(lake_of()), faulty, will_be_prepared=False)
    text = " ".join(map(str, (found.value, *found.value.remedies)))
    for words in ("Express", "version 12.0.1", "Agent does not run", "capture is off"):
        assert words in text


def test_what_the_setup_turns_on_is_no_fault_before_it() -> None:
    unprepared = replace(SERVER, is_cdc_enabled=False, snapshot_isolation=False, seconds_behind=None)
    assert judge_server(source_of(lake_of()), unprepared, will_be_prepared=True) == ()


def test_facts_that_the_user_may_not_see_are_no_faults() -> None:
    unknown = replace(
        SERVER, agent_runs=None, seconds_behind=None, retention_minutes=None, keeps_updates=None
    )
    assert judge_server(source_of(lake_of()), unknown, will_be_prepared=False) == ()


def test_a_managed_instance_is_no_old_server() -> None:
    managed = replace(SERVER, version="12.0.2000.8", engine_edition=8, edition="SQL Azure")
    assert judge_server(source_of(lake_of()), managed, will_be_prepared=False) == ()


def test_a_short_retention_and_a_trace_flag_are_warnings() -> None:
    server = replace(SERVER, retention_minutes=120, keeps_updates=True)
    found = judge_server(source_of(lake_of()), server, will_be_prepared=False)
    assert "for 2 hours only" in found[0]
    assert "8207" in found[1]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"primary_key": (), "unique_keys": ()}, "nothing identifies its rows"),
        ({"kind": "a table in memory"}, "change data capture cannot record it: found a table in memory"),
        ({"primary_key": ("at",)}, "datetime2(7), of which the lake has six decimal places"),
        ({"columns": (*COLUMNS, ColumnFacts("NAME", 4, "int"))}, "takes two of its columns for one: "),
        ({"table": "or[der]s"}, "Debezium takes brackets in a name for quotes"),
    ],
)
def test_a_table_that_cannot_be_taken_is_left_out(facts: Mapping[str, Any], words: str) -> None:
    (problem,) = problems_of(replace(ORDERS, **facts))
    assert words in problem.replace(": table erp.dbo.orders", "")


def test_all_faults_of_a_table_are_told_at_once() -> None:
    table = replace(ORDERS, primary_key=(), kind="a FileTable", columns=(*COLUMNS, ColumnFacts("", 4, "int")))
    assert len(problems_of(table)) == 3


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ('["name"]', "the key does not identify a row"),
        ('["id", "name"]', "exactly the columns of a unique index"),
        ('["nothing"]', "a column that does not exist"),
    ],
)
def test_the_key_of_the_lake_file_has_to_be_that_of_a_unique_index(key: str, words: str) -> None:
    more = f'[table."erp.dbo.orders"]\nkey = {key}\n'
    assert words in problems_of(replace(ORDERS, primary_key=()), more)[0]


def test_a_key_column_that_may_be_null_or_is_computed_is_refused() -> None:
    columns = (*COLUMNS, ColumnFacts("c", 4, "int", is_taken=False, is_computed=True, is_nullable=False))
    unique = (frozenset({"name"}), frozenset({"c"}))
    table = replace(ORDERS, columns=columns, primary_key=(), unique_keys=unique)
    assert "may be null" in problems_of(table, '[table."erp.dbo.orders"]\nkey = ["name"]\n')[0]
    assert "a computed column" in problems_of(table, '[table."erp.dbo.orders"]\nkey = ["c"]\n')[0]


def test_columns_that_do_not_reach_the_lake_are_a_warning() -> None:
    columns = (
        *COLUMNS,
        ColumnFacts("total", 4, "money", is_taken=False, is_computed=True),
        ColumnFacts("place", 5, "geography", is_taken=False),
    )
    (warning,) = judged(replace(ORDERS, columns=columns)).warnings
    assert "total (computed), place (geography)" in warning


def test_a_pattern_and_an_entry_without_a_table_stop_the_start_together() -> None:
    with pytest.raises(SqlServerNotReady) as found:
        judged(more='[table."erp.dbo.gone"]\nkey = ["id"]\n', patterns='["dbo.*", "hr.*"]')
    assert '"hr.*"' in str(found.value)
    assert any("dbo.gone" in str(remedy) for remedy in found.value.remedies)


def after(table: TableFacts, *instances: CaptureInstance, wanted: str = OURS.name) -> TableFacts:
    return replace(table, captures=Captures(instances, wanted, NAMES))


def test_a_capture_instance_of_other_columns_is_not_current() -> None:
    def is_current(*instances: CaptureInstance, wanted: str = OURS.name) -> bool:
        return Captures(instances, wanted, NAMES).is_current

    assert is_current(OURS)
    assert is_current(THEIRS)
    assert is_current(THEIRS, OURS)
    assert not is_current()
    assert not is_current(OURS, wanted="tributary_100_bbbbbbbb")
    assert not is_current(replace(THEIRS, columns=("id",)))
    # Debezium goes on to the newest.
    assert not is_current(OURS, replace(THEIRS, columns=("id",)))


def test_a_changed_table_without_room_for_an_instance_is_left_out_with_the_command_that_makes_room() -> None:
    newer = replace(OURS, name="tributary_100_bbbbbbbb", change_table=901)
    (problem,) = judged(after(ORDERS, OURS, newer, wanted="tributary_100_cccccccc")).left_out[0].problems
    assert "tributary_100_aaaaaaaa" in str(problem.remedies[0])


def test_two_instances_that_are_current_are_a_warning() -> None:
    newer = replace(OURS, name="tributary_100_bbbbbbbb", change_table=901)
    (warning,) = judged(after(ORDERS, OURS, newer, wanted=newer.name)).warnings
    assert "two capture instances" in warning
    assert "@capture_instance = N'tributary_100_aaaaaaaa'" in warning


def own_tables() -> tuple[TableFacts, ...]:
    return tuple(
        replace(ORDERS, schema="tributary", table=table, number=number)
        for number, table in enumerate(("heartbeat", "signals_shop__erp"), start=1)
    )


def test_a_prepared_database_lacks_nothing() -> None:
    lake = lake_of()
    tables = (ORDERS, *own_tables(), replace(ORDERS, schema="hr", captures=None))
    judge_preparation(lake, source_of(lake), SERVER, tables, ())


def test_all_that_an_administrator_has_to_prepare_is_told_at_once() -> None:
    lake = lake_of()
    tables = (
        replace(ORDERS, captures=Captures((), OURS.name, NAMES)),
        replace(after(ORDERS, OURS, wanted="tributary_100_bbbbbbbb"), table="changed"),
        replace(ORDERS, table="left_out", captures=None),
    )
    untaken = (TableName("erp", "dbo", "left_out"),)
    with pytest.raises(SqlServerNotReady) as found:
        judge_preparation(lake, source_of(lake), replace(SERVER, snapshot_isolation=False), tables, untaken)
    for words in (
        "does not allow snapshot isolation",
        "no table tributary.heartbeat",
        "no table tributary.signals_shop__erp",
        "the changes of dbo.orders are not captured",
        "dbo.changed has other columns now than its capture instance tributary_100_aaaaaaaa",
    ):
        assert words in str(found.value)
    assert "left_out" not in str(found.value)


def test_rows_of_the_catalog_become_the_captures_of_tables() -> None:
    def recorded(name: str, number: int, column: str, computed: int = 0) -> dict[str, object]:
        return {"table_id": 100, "name": name, "change_table": number, "column": column, "computed": computed}

    found = captures_of(
        [{"id": 100, "instance": "tributary_100_aaaaaaaa"}, {"id": 101, "instance": "tributary_101_b"}],
        {100: ("id", "name")},
        [
            recorded("dbo_orders", 800, "id"),
            recorded("dbo_orders", 800, "total", 1),
            recorded("tributary_100_aaaaaaaa", 900, "id"),
            recorded("tributary_100_aaaaaaaa", 900, "name"),
        ],
    )

    older, newer = found[100].instances
    assert (older.columns, older.computed, older.is_ours) == (("id", "total"), ("total",), False)
    assert found[100].newest == newer == CaptureInstance("tributary_100_aaaaaaaa", 900, ("id", "name"))
    assert found[100].is_current
    assert found[101].newest is None


def definition_of(table: TableFacts) -> Any:
    return definitions_of(source_of(lake_of()), [table])[TableName("erp", "dbo", "orders")]


def test_a_table_is_read_again_after_its_capture_instance_has_changed() -> None:
    newer = replace(OURS, name="tributary_100_bbbbbbbb", change_table=901)
    before = definition_of(ORDERS)

    assert silent_changes(before, definition_of(ORDERS)) is None
    for now in (
        after(ORDERS, OURS, newer),
        # Somebody has ended the capture and begun it again, with a gap in between.
        after(ORDERS, replace(OURS, change_table=902)),
        replace(ORDERS, number=101),
    ):
        assert silent_changes(before, definition_of(now)) is not None
    # The older instance is gone, and the newer one goes on.
    both, alone = definition_of(after(ORDERS, OURS, newer)), definition_of(after(ORDERS, newer))
    assert silent_changes(both, alone) is None


COMMIT = "00000027:00000ac0:0002"


def test_an_lsn_is_read_and_written_as_debezium_writes_it() -> None:
    lsn = lsn_of(COMMIT)
    assert lsn is not None
    assert len(lsn) == 10
    assert shown(lsn) == COMMIT
    assert lsn_of("NULL") is None
    assert lsn_of(None) is None
    assert lsn_of("00") is None


def test_kafka_has_all_changes_once_the_offset_is_behind_their_transaction() -> None:
    end = lsn_of(COMMIT)
    assert end is not None

    def unread(commit: str, change: str = "NULL", **more: object) -> str | None:
        return unread_until({"commit_lsn": commit, "change_lsn": change, **more}, end)

    assert unread(COMMIT) is None
    assert unread("00000027:00000ac0:0003", "00000027:00000ac0:0001") is None
    assert "goes" not in str(unread(COMMIT, "00000027:00000ac0:0001"))
    assert "has read up to 00000027:00000abf:ffff" in str(unread("00000027:00000abf:ffff"))
    assert "no LSN" in str(unread("NULL"))
    assert "snapshot still runs" in str(unread(COMMIT, snapshot="INITIAL", snapshot_completed=False))
    assert unread(COMMIT, snapshot="INITIAL", snapshot_completed=True) is None
    assert "has sent nothing" in str(snapshot_problem(None))


@dataclass
class Database:
    """What the queries of `steps_to_kafka` see: the heartbeat table, and its change table."""

    written: int = 0
    recorded: int = 0

    def execute(self, *_: object) -> None:
        self.written += 1

    def first_row(self, _: object, query: str, __: object = ()) -> Mapping[str, Any] | None:
        if "cdc.change_tables" in query:
            return {"name": "tributary_1_aaaaaaaa_CT"}
        if "[cdc].[tributary_1_aaaaaaaa_CT]" in query:
            return {"lsn": bytes([0] * 9 + [self.recorded]), "beaten_at": f"{self.recorded:02}"}
        return {"beaten_at": f"{self.written:02}"}


def test_kafka_is_awaited_up_to_a_change_that_the_capture_job_has_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database, lake = Database(recorded=0), lake_of()
    monkeypatch.setattr(progress, "execute", database.execute)
    monkeypatch.setattr(progress, "first_row", database.first_row)
    offset: dict[str, object] = {}
    steps = steps_to_kafka(cast("Any", None), lake, source_of(lake), lambda: offset or None)

    assert "has sent nothing" in str(next(steps).lacking())
    offset.update(commit_lsn="00000000:00000000:0000", change_lsn="NULL")
    capture = next(steps)
    assert "SQL Server Agent" in str(capture.lacking())
    database.recorded = database.written
    assert capture.lacking() is None
    debezium = next(steps)
    assert "has read up to 00000000:00000000:0000" in str(debezium.lacking())
    # Debezium tells its offset only after a change.
    assert database.written == 2
    offset.update(commit_lsn="00000000:00000000:0001")
    assert debezium.lacking() is None
    assert next(steps, None) is None


def test_rows_of_the_driver_become_a_batch_in_their_forms() -> None:
    forms = {"a": BOOLEAN, "b": INTEGER, "c": NUMBER, "d": BYTES}
    schema = pa.schema([(name, form.arrow) for name, form in forms.items()])
    rows = [(True, decimal.Decimal(7), "0.5", bytearray(b"\x00")), (None, None, None, None)]
    assert batch_of(rows, schema).to_pylist() == [
        {"a": True, "b": 7, "c": "0.5", "d": b"\x00"},
        {"a": None, "b": None, "c": None, "d": None},
    ]


def test_reconcile_sees_the_columns_that_reach_the_lake() -> None:
    columns = (*COLUMNS, ColumnFacts("total", 4, "money", is_taken=False), ColumnFacts("doc", 5, "xml"))
    own = replace(ORDERS, schema="tributary")
    (table,) = tables_of([replace(ORDERS, columns=columns), own])
    assert [column.name for column in table.columns] == ["id", "name", "at", "doc"]
    assert table.columns[0].expression == "CAST([id] AS bigint)"
    assert table.columns[3].form is None


def test_the_servers_own_words_are_told_in_one_line() -> None:
    said = b"Login failed for user 'x'.DB-Lib error message 20018, severity 14:\nGeneral SQL Server error\n"
    error = ValueError((18456, said))
    assert told_by(error) == "Login failed for user 'x'."
    assert number_of(error) == 18456
    assert told_by(ValueError()) == "ValueError"
    away = ValueError((20009, b"DB-Lib error message 20009, severity 9:\nUnable to connect: it is away\n"))
    assert told_by(away) == "Unable to connect: it is away"


@pytest.mark.parametrize("way", ["leave_out", "mask", "hash"])
def test_a_hidden_column_has_to_be_there_and_must_not_identify_rows(way: str) -> None:
    def problems(columns: str) -> list[str]:
        return problems_of(ORDERS, f'[table."erp.dbo.orders"]\n{way} = {columns}\n')

    assert not problems('["name", "gone?"]')
    assert "the key column id" in problems('["id"]')[0]
    assert "found nmae" in problems('["nmae"]')[0]

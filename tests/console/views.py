"""A view of a lake that tests build by hand."""

from __future__ import annotations

from datetime import UTC, datetime

from connectors.connect_rest import ConnectorStatus, TaskStatus
from connectors.engines.database_log import DatabaseLog
from spark_app.ledger.ledger import Ledger, SourceTimes
from spark_app.run.outcome import Outcome
from tributary.api.timeline import Commit
from tributary.console.local_lake import pipeline_of
from tributary.console.trends import Trends
from tributary.console.view import LakeView
from tributary.contract.acceleration import ChosenSteps
from tributary.contract.remedies import plain_words
from tributary.contract.table_name import TableName
from tributary.local.left_out import LeftOutTable
from tributary.local.status import PipelineStatus, ServiceStatus
from tributary.operations.table_states import TableState
from tributary.operations.verify.record import CheckedPart, Verification

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_NOW_US = round(NOW.timestamp() * 1e6)
ORDERS, USERS = TableName("web", "public", "orders"), TableName("web", "public", 'us"ers<script>')


def commit() -> Commit:
    """A commit whose changes were 2 s old, 95 % of them at most 3 s."""
    times = SourceTimes(
        min=_NOW_US - 4_000_000, p05=_NOW_US - 3_000_000, p50=_NOW_US - 2_000_000, max=_NOW_US
    )
    ledger = Ledger(topic="shop.web.public.orders", positions={0: 9}, events=8, source_times=times)
    return Commit("20260102030400000", NOW, rows=7, deletes=1, ledger=ledger)


def well(behind: int = 5) -> TableState:
    verified = Verification(ORDERS, parts=(CheckedPart(rows=7, equal_us=_NOW_US),), looked_us=_NOW_US)
    return TableState(ORDERS, behind, None, ingests=True, commit=commit(), verified=verified)


def blocked() -> TableState:
    return TableState(ORDERS, 5, Outcome("blocked", "2026-01-02T03:04:05", what="Its topic is gone"))


def left_out() -> TableState:
    found = LeftOutTable(table=str(USERS), reasons=("no key",), remedies=("Add one.",))
    return TableState(USERS, None, None, left_out=found)


def pipeline_found(connector: str = "RUNNING") -> PipelineStatus:
    """The servers and a connector in this state."""
    services = tuple(
        ServiceStatus(name, "running", f"{name}.log", 1000, 7, 2_000_000, 60.0)
        for name in ("postgres", "kafka", "s3", "connect")
    )
    of_source = ConnectorStatus("tributary-shop-web-debezium", connector, (TaskStatus(0, connector),))
    return PipelineStatus(None, services, (of_source,))


def view_of(*tables: TableState, connector: str = "RUNNING", problem: str | None = None) -> LakeView:
    shown = pipeline_of(pipeline_found(connector), plain_words)
    steps = ChosenSteps("plain", "the jar is missing", "auto", "2026-01-02T03:04:05+00:00")
    logs = {"web": DatabaseLog(kept=5_000_000, unread=1000), "crm": DatabaseLog(behind=2.0)}
    return LakeView(NOW, shown, tables, problem, steps, logs, quarantined={ORDERS: 3})


def trends_of(*views: LakeView) -> Trends:
    """What a console knows after it has seen these, one after another."""
    trends = Trends()
    for view in views:
        trends.add(view)
    return trends

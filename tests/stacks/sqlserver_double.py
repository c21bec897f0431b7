"""A double of a SQL Server on Amazon RDS, which knows a source's batches by their text.

It answers as Microsoft and Amazon document it. No SQL Server runs here, so nothing proves that a real one
answers the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pymssql

from stacks.functions.sqlserver_bootstrap.preparation import PASSWORD, SqlServerPreparation

ADMIN, ADMIN_PASSWORD = "lakeadmin", "Admin0Password"


def refusal(number: int, text: str) -> pymssql.OperationalError:
    """Return an error as the driver raises it."""
    told = (
        f"{text}DB-Lib error message 20018, severity 16:\nGeneral SQL Server error: Check messages from it\n"
    )
    return pymssql.OperationalError((number, told.encode()))


NO_ANSWER = pymssql.OperationalError(
    (20009, b"DB-Lib error message 20009, severity 9:\nUnable to connect: Adaptive Server is unavailable\n")
)


TOO_LONG = pymssql.OperationalError(
    (20003, b"DB-Lib error message 20003, severity 6:\nAdaptive Server connection timed out\n")
)


@dataclass
class SqlServer:
    """The server.

    tables      the application's, with a number that changes with their columns
    recorded    of each table, the numbers that its capture instances have
    unfit       tables that CDC refuses, with the server's words
    logins      with their passwords; None: one that nobody knows
    failures    are raised first, one at each login; None: that login succeeds
    users       each with its database
    former      another preparation, which can be removed
    slow        batches with the seconds that each takes
    spend       lets time pass
    ran         the batches and statements, in their order, with the user's name
    """

    preparation: SqlServerPreparation
    databases: set[str] = field(default_factory=lambda: {"master", "msdb", "rdsadmin"})
    is_cdc_on: bool = False
    has_snapshot_isolation: bool = False
    tables: dict[str, int] = field(default_factory=dict)
    recorded: dict[str, list[int]] = field(default_factory=dict)
    unfit: dict[str, str] = field(default_factory=dict)
    logins: dict[str, str | None] = field(default_factory=lambda: {ADMIN: ADMIN_PASSWORD})
    users: set[tuple[str, str]] = field(default_factory=set)
    missing: list[str] = field(default_factory=list)
    failures: list[Exception | None] = field(default_factory=list)
    former: SqlServerPreparation | None = None
    slow: dict[str, float] = field(default_factory=dict)
    spend: Callable[[float], None] = lambda _: None
    ran: list[tuple[str, str]] = field(default_factory=list)
    opened: list[Mapping[str, object]] = field(default_factory=list)
    is_locked: int = 0
    seconds: int | None = 30
    sessions: int = 0

    def open(
        self, host: str, port: int, user: str, password: str, database: str, **options: Any
    ) -> Any:  # a pymssql.Connection
        self.opened.append({"host": host, "port": port, "user": user, "database": database, **options})
        if self.failures and (failure := self.failures.pop(0)) is not None:
            raise failure
        if self.logins.get(user) != password:
            raise refusal(18456, f"Login failed for user '{user}'.")
        if database not in self.databases:
            raise refusal(4060, f'Cannot open database "{database}" requested by the login.')
        self.sessions += 1
        return Session(self, user, database, SimpleNamespace(query_timeout=options["timeout"]))

    def batches_of(self, user: str) -> list[str]:
        return [batch for who, batch in self.ran if who == user]

    @property
    def _all_tables(self) -> dict[str, int]:
        own = dict.fromkeys(self.preparation.own_tables, 1)
        return {**(own if self._has_user else {}), **self.tables}

    @property
    def _has_user(self) -> bool:
        return (self.preparation.database, self.preparation.user) in self.users

    def unrecorded(self) -> list[dict[str, Any]]:
        if not self.is_cdc_on:
            raise refusal(208, "Invalid object name 'cdc.change_tables'.")
        return [
            {"table": table, "instances": len(self.recorded.get(table, []))}
            for table, form in sorted(self._all_tables.items())
            if self.recorded.get(table, [None])[-1] != form
        ]

    def capture(self) -> None:
        failed = ""
        for row in self.unrecorded():
            table = row["table"]
            if table in self.unfit:
                failed += f"{table}: {self.unfit[table]} "
            elif row["instances"] < 2:
                self.recorded.setdefault(table, []).append(self._all_tables[table])
        if failed:
            raise refusal(50000, failed)


@dataclass
class Session:
    """What `pymssql.connect` returns, as far as `connectors.engines.sqlserver.session` uses it."""

    server: SqlServer
    user: str
    database: str
    _conn: Any

    def cursor(self, as_dict: bool = False) -> Cursor:  # noqa: ARG002
        return Cursor(self)

    def close(self) -> None:
        self.server.sessions -= 1


@dataclass
class Cursor:
    session: Session
    rows: list[dict[str, Any]] = field(default_factory=list)

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, batch: str) -> None:
        server, session, preparation = self.session.server, self.session, self.session.server.preparation
        server.ran.append((session.user, batch))
        if (takes := server.slow.get(batch, 0.0)) > (most := session._conn.query_timeout):
            server.spend(most)
            raise TOO_LONG
        server.spend(takes)
        queries: Mapping[str, Callable[[], list[dict[str, Any]]]] = {
            preparation.missing: lambda: [{"problem": each} for each in server.missing],
            preparation.is_cdc_on: lambda: [{"is_cdc_enabled": int(server.is_cdc_on)}],
            preparation.unrecorded: server.unrecorded,
            preparation.age: lambda: [{"seconds": server.seconds}],
        }
        if batch in queries:
            assert session.database == preparation.database
            self.rows = queries[batch]()
            return
        assert session.user == ADMIN, f"only the administrator changes anything: {batch}"
        self._change(batch)

    def _change(self, batch: str) -> None:
        server, session, preparation = self.session.server, self.session, self.session.server.preparation
        use, lock = preparation.opening
        before, _, after = preparation.login.partition(PASSWORD)
        if batch == preparation.creation:
            server.databases.add(preparation.database)
            return
        if batch == use:
            session.database = preparation.database
            return
        former = server.former
        if former is not None and session.database == former.database and batch in former.removal:
            self._remove(former, batch)
            return
        assert session.database == preparation.database, f"in {session.database}: {batch}"
        if batch == lock:
            if server.is_locked:
                server.is_locked -= 1
                raise refusal(51000, "another preparation of the database is still running")
        elif batch in preparation.setup:
            self._set_up(batch)
        elif batch == preparation.capture:
            if not server.is_cdc_on:
                raise refusal(208, "Invalid object name 'cdc.change_tables'.")
            server.capture()
        elif batch in preparation.afterwards:
            if not server.recorded:
                raise refusal(22985, "The jobs of CDC do not exist.")
        elif batch in preparation.removal:
            self._remove(preparation, batch)
        elif batch.startswith(before) and batch.endswith(after):
            assert preparation.user in server.logins
            server.logins[preparation.user] = batch.removeprefix(before).removesuffix(after)
        else:
            raise AssertionError(f"no batch of the source: {batch}")

    def _set_up(self, batch: str) -> None:
        server, user = self.session.server, self.session.server.preparation.user
        if "rds_cdc_enable_db" in batch:
            server.is_cdc_on = True
        elif "ALLOW_SNAPSHOT_ISOLATION" in batch:
            server.has_snapshot_isolation = True
        elif "CREATE LOGIN" in batch:
            server.logins.setdefault(user, None)
        elif "CREATE USER" in batch:
            server.users.add((self.session.database, user))

    def _remove(self, preparation: SqlServerPreparation, batch: str) -> None:
        server = self.session.server
        if "sp_cdc_disable_table" in batch:
            server.recorded.clear()
        elif batch == preparation.removal[-2]:
            server.users.discard((preparation.database, preparation.user))
        elif batch == preparation.removal[-1]:
            is_used = any(user == preparation.user for _, user in server.users)
            if not (is_used and "sys.database_principals" in batch):
                server.logins.pop(preparation.user, None)

    def nextset(self) -> bool:
        return False

    def fetchall(self) -> list[dict[str, Any]]:
        return self.rows

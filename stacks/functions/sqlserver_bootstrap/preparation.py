"""Prepare a source's SQL Server database, look after what CDC records, and remove what was prepared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from connectors.engines.sqlserver.session import Session, execute, first_row, rows_of
from stacks.functions.sqlserver_bootstrap.server import NotReady, Patience, Refused, Server, told

PASSWORD = "<password>"
"""Stands for the password in a statement that sets it."""

_MASTER = "master"
_REMOVAL_SECONDS = 30.0


class NotPrepared(Exception):
    """The database cannot be read by Debezium as it is."""


@dataclass(frozen=True)
class SqlServerPreparation:
    """The SQL of `connectors.engines.sqlserver` for one source.

    user        that Debezium logs in as
    creation    creates the database
    opening     batches with which a session of ours begins: it goes to the database, and waits for the others
    setup       batches that may run any number of times
    capture     a batch that records the tables that CDC does not record as they are
    afterwards  batches for which CDC must have recorded a table
    login       a statement that gives the user the password in the place of PASSWORD
    is_cdc_on   a query for whether CDC is on in the database
    missing     a query of the user's own for what is still missing
    unrecorded  a query for the tables that CDC does not record as they are
    age         a query for the seconds since CDC has recorded anything
    own_tables  Tributary's, as `unrecorded` names them
    removal     batches to run one by one; the last two remove the user
    """

    database: str
    user: str
    creation: str
    opening: tuple[str, ...]
    setup: tuple[str, ...]
    capture: str
    afterwards: tuple[str, ...]
    login: str
    is_cdc_on: str
    missing: str
    unrecorded: str
    age: str
    own_tables: tuple[str, ...]
    removal: tuple[str, ...]

    @classmethod
    def from_json(cls, text: str) -> SqlServerPreparation:
        content: dict[str, Any] = json.loads(text)
        lists = {name: tuple(value) for name, value in content.items() if isinstance(value, list)}
        return cls(**content | lists)

    def to_json(self) -> str:
        """Return ASCII, because CloudFormation has lost other characters before."""
        return json.dumps(asdict(self), ensure_ascii=True)


@dataclass(frozen=True)
class Administrator:
    """The administrator of a server. The password rotates."""

    server: Server
    user: str
    password: str

    def session(self, database: str = _MASTER) -> AbstractContextManager[Session]:
        """Open a session. Raises NotReady and Refused, also for what runs in it."""
        return self.server.session(self.user, self.password, database, rotates=True)


@dataclass(frozen=True)
class Recorded:
    """What CDC records of a database.

    unrecorded  the tables that it does not record as they are now
    age         seconds since it has recorded anything; None: it never has
    """

    unrecorded: tuple[str, ...]
    age: int | None


def prepare(admin: Administrator, preparation: SqlServerPreparation, password: str) -> list[str]:
    """Prepare everything, also repeatedly. Return remarks for a person.

    Raises NotPrepared, Refused and NotReady. SQL Server commits each of these statements by itself.
    """
    if re.fullmatch(r"[A-Za-z0-9]+", password) is None:
        raise NotPrepared("the password in the secret has characters other than letters and digits")
    with admin.session() as session:
        for batch in (preparation.creation, *preparation.opening, *preparation.setup):
            execute(session, batch)
        refusal = _capture(session, preparation)
        unrecorded = _unrecorded(session, preparation)
        if own := sorted({*unrecorded} & {*preparation.own_tables}):
            raise NotPrepared(
                f"SQL Server does not record {', '.join(own)}: {refusal or 'it says no reason'}"
            )
        for batch in preparation.afterwards:
            execute(session, batch)
        # A rule of the server's against old passwords could refuse the same one again.
        if not admin.server.lets_in(preparation.user, password, preparation.database):
            execute(session, preparation.login.replace(PASSWORD, password))
    with admin.server.session(preparation.user, password, preparation.database) as session:
        missing = [str(row["problem"]) for row in rows_of(session, preparation.missing)]
    if missing:
        raise NotPrepared(f"{preparation.user} finds: {'; '.join(missing)}")
    return [f"not recorded: {table}" for table in unrecorded] + ([refusal] if refusal else [])


def look_after(admin: Administrator, preparation: SqlServerPreparation) -> Recorded:
    """Record tables that are new or have changed, and return what is recorded.

    Raises Refused and NotReady. What SQL Server refuses of a table, it only prints."""
    with admin.session(preparation.database) as session:
        if _is_cdc_off(session, preparation):
            # Somebody has restored the database, which turns CDC off.
            print("change data capture is off: the database is prepared again")
            for batch in (*preparation.opening, *preparation.setup):
                execute(session, batch)
            _capture(session, preparation)
            for batch in preparation.afterwards:
                execute(session, batch)
        instances = _unrecorded(session, preparation)
        # A third instance is not possible.
        if any(number < 2 for number in instances.values()):
            for batch in preparation.opening:
                execute(session, batch)
            if (refusal := _capture(session, preparation)) is not None:
                print(refusal)
            before, instances = instances, _unrecorded(session, preparation)
            if recorded := sorted(before.keys() - instances.keys()):
                print(f"recorded from now on: {', '.join(recorded)}")
        for table, number in sorted(instances.items()):
            why = "it has two capture instances, and a table can have no third" if number > 1 else "see above"
            print(f"not recorded as it is now: {table}: {why}")
        row = first_row(session, preparation.age)
        age = None if row is None or row["seconds"] is None else int(row["seconds"])
    return Recorded(tuple(sorted(instances)), age)


def give_up(
    admin: Callable[[], Administrator], preparation: SqlServerPreparation, patience: Patience
) -> None:
    """Remove what `prepare` created, as far as possible. Keep the database and all its tables.

    Keep the login, too, while another database has a user for it: CloudFormation deletes the former resource
    after another database has replaced this one."""
    _remove(admin, preparation, preparation.removal, patience)


def give_up_user(
    admin: Callable[[], Administrator], preparation: SqlServerPreparation, patience: Patience
) -> None:
    """Remove the user of a former preparation, after another one has created its own user."""
    _remove(admin, preparation, preparation.removal[-2:], patience)


def _remove(
    admin: Callable[[], Administrator],
    preparation: SqlServerPreparation,
    batches: tuple[str, ...],
    patience: Patience,
) -> None:
    def run(batch: str) -> None:
        with admin().session(preparation.database) as session:
            execute(session, batch)

    for batch in batches:
        try:
            patience.until_ready(partial(run, batch), _REMOVAL_SECONDS)
        except (Refused, NotReady) as error:
            print(f"left as it is: {error}")


def _capture(session: Session, preparation: SqlServerPreparation) -> str | None:
    """Record the tables, and return why SQL Server refuses some of them; None: it refuses none.

    The batch continues after a table that is refused, and names it at its end."""
    try:
        with told():
            execute(session, preparation.capture)
    except Refused as refusal:
        return str(refusal)
    return None


def _is_cdc_off(session: Session, preparation: SqlServerPreparation) -> bool:
    row = first_row(session, preparation.is_cdc_on)
    return row is None or not row["is_cdc_enabled"]


def _unrecorded(session: Session, preparation: SqlServerPreparation) -> dict[str, int]:
    """Return the tables that are not recorded as they are, with the number of their capture instances."""
    return {str(row["table"]): int(row["instances"]) for row in rows_of(session, preparation.unrecorded)}

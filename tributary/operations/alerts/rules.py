"""Judge a lake by the rules of its lake file. Nothing here reads or sends anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from connectors.connect_rest import ConnectorStatus
from connectors.engines.database_log import DatabaseLog, size_text
from tributary.contract.alerts import Alerts
from tributary.contract.remedies import ShowQuarantine, Words, in_words
from tributary.contract.table_name import TableName
from tributary.local.status import PipelineStatus
from tributary.operations.snapshots.view import is_different, paragraph
from tributary.operations.table_states import TableState
from tributary.operations.verify.view import is_different as is_found_different
from tributary.operations.verify.view import sentence, verified_as_of

Rule = Literal["freshness", "lag", "quarantine", "blocked", "verified", "unread_log_gb"]

_MILLISECONDS = 1000


@dataclass(frozen=True)
class Alert:
    """What a person should know. The rule and the subject (a table, a connector, a server) identify it."""

    rule: Rule
    subject: str
    text: str

    @property
    def key(self) -> str:
        return f"{self.rule} {self.subject}"


@dataclass(frozen=True)
class Observation:
    """A lake at one moment.

    tables       None: they cannot be read now, so nothing is known about them
    quarantined  how many events of each table are in quarantine; None: that is not known
    logs         the logs of the databases, by source, as far as a rule needs them
    """

    at: datetime
    pipeline: PipelineStatus
    tables: Sequence[TableState] | None
    quarantined: Mapping[TableName, int] | None = None
    logs: Mapping[str, DatabaseLog] = field(default_factory=dict)


@dataclass
class Ages:
    """How long each table has had changes that it has not applied, from one observation to the next."""

    _behind_since: dict[TableName, datetime] = field(default_factory=dict)

    def of(self, observed: Observation) -> Mapping[TableName, timedelta]:
        """Return the age of the oldest change that each table has not applied, as far as it is known."""
        ages = {}
        for table in observed.tables or ():
            if not table.behind or table.paused is not None:
                self._behind_since.pop(table.table, None)
                continue
            since = self._behind_since.setdefault(table.table, observed.at)
            ages[table.table] = observed.at - since
            commit = table.commit
            if commit is None:
                continue
            # A commit shows that the table makes progress, and how old its changes were.
            if commit.completed > since:
                self._behind_since[table.table] = commit.completed
                ages[table.table] = observed.at - commit.completed
            if commit.freshness is not None and commit.completed >= since:
                late = timedelta(milliseconds=commit.freshness.p95)
                ages[table.table] = max(ages[table.table], late)
        return ages


def judge(
    rules: Alerts, observed: Observation, ages: Mapping[TableName, timedelta], words: Words
) -> tuple[Alert, ...]:
    """Return everything that breaks a rule, as far as it is known."""
    return tuple(_judged(rules, observed, ages, words))


def is_known(rule: str, subject: str, observed: Observation, rules: Alerts) -> bool:
    """Return whether an observation would show that this alert still holds.

    An alert of a rule that the lake file no longer has does not."""
    limit = getattr(rules, rule, None)
    if limit is None or limit is False:
        return True
    if rule == "quarantine":
        return observed.quarantined is not None
    if rule == "unread_log_gb":
        if not observed.logs:
            return False
        # All of the lake's sources are among them.
        return subject not in observed.logs or observed.logs[subject].unread is not None
    is_of_pipeline = subject in {one.name for one in observed.pipeline.services} | {
        one.name for one in observed.pipeline.connectors
    }
    return is_of_pipeline or observed.tables is not None


def _judged(
    rules: Alerts, observed: Observation, ages: Mapping[TableName, timedelta], words: Words
) -> Iterator[Alert]:
    if rules.blocked:
        for service in observed.pipeline.services:
            if service.state == "died":
                yield Alert("blocked", service.name, f"The server died. Its log: {service.log}")
        for connector in observed.pipeline.connectors:
            if connector.failure is not None:
                yield Alert("blocked", connector.name, _failure(connector, words))
    for table in observed.tables or ():
        name = str(table.table)
        if rules.blocked and not table.is_well:
            yield Alert("blocked", name, _problem(table, words))
        if rules.lag is not None and table.paused is None and (table.behind or 0) > rules.lag:
            yield Alert("lag", name, f"{table.behind:,} events behind, more than {rules.lag:,}.")
        age = ages.get(table.table)
        if rules.freshness is not None and age is not None and age > rules.freshness:
            text = f"Its changes are {_span(age)} old, older than {_span(rules.freshness)}."
            yield Alert("freshness", name, text)
        verified = None if table.paused else verified_as_of(table.verified)
        if rules.verified is not None and verified is not None and observed.at - verified > rules.verified:
            text = (
                f"It last equaled its source as of {verified.isoformat(timespec='seconds')}, more than "
                f"{_span(rules.verified)} ago."
            )
            yield Alert("verified", name, text)
    if rules.quarantine is not None:
        for table_name, count in sorted((observed.quarantined or {}).items()):
            if count > rules.quarantine:
                events = "1 event is" if count == 1 else f"{count:,} events are"
                text = f"{events} in quarantine, more than {rules.quarantine:,}."
                remedy = in_words([ShowQuarantine(str(table_name))], words)
                yield Alert("quarantine", str(table_name), f"{text} {remedy}")
    for source, log in sorted(observed.logs.items()):
        limit = None if rules.unread_log_gb is None else rules.unread_log_gb * 1e9
        if limit is not None and log.unread is not None and log.unread > limit:
            text = (
                f"Debezium has not read {size_text(log.unread)} of the database's log, more than "
                f"{size_text(limit)}. The database keeps {size_text(log.kept or log.unread)} of it."
            )
            yield Alert("unread_log_gb", source, text)


def _failure(connector: ConnectorStatus, words: Words) -> str:
    return f"The connector failed: {connector.failure} {in_words(connector.remedies, words)}".strip()


def _problem(table: TableState, words: Words) -> str:
    if table.left_out is not None:
        return f"It is left out: {' '.join((*table.left_out.reasons, *table.left_out.remedies))}"
    if table.outcome is not None:
        return f"It is blocked: {table.outcome.reason} {in_words(table.outcome.remedies, words)}".strip()
    if table.snapshot is not None and is_different(table.snapshot):
        return paragraph(table.snapshot)
    if is_found_different(table.verified) and table.verified is not None:
        return sentence(table.verified)
    return table.state


def _span(age: timedelta) -> str:
    seconds = round(age.total_seconds())
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"

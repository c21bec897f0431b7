"""Evaluate the alerts of a lake as long as an ingest follows it: one process at a time does it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from connectors.engines.database_log import DatabaseLog
from tributary.contract.alerts import Alerts
from tributary.contract.errors import TributaryError
from tributary.contract.remedies import Words
from tributary.contract.table_name import TableName
from tributary.local import kafka, s3
from tributary.local.status import read_status
from tributary.operations.alerts.rules import Ages, Alert, Observation, is_known, judge
from tributary.operations.alerts.sending import Channel, NotSent, channels
from tributary.operations.alerts.sent import SentAlert, changes, read_sent, write_sent
from tributary.operations.keeping import alone, in_a_thread
from tributary.operations.quarantine_counts import QuarantineCounts
from tributary.operations.source_facts import KeptLogs
from tributary.operations.table_lag import QuietTables
from tributary.operations.table_states import read_table_states
from tributary.operations.workspace import Workspace

SECONDS_BETWEEN_LOOKS = 15.0
SECONDS_BETWEEN_COUNTS = 60.0
"""How long to wait before the events in quarantine are counted and the databases' logs are read again."""

FILE = "alerts.json"


@dataclass
class AlertKeeper:
    """Sends an alert when a rule is broken first, and tells when it no longer is.

    tell     gets what could not be sent, for a person at the terminal
    observe  returns the state of the lake
    """

    workspace: Workspace
    tell: Callable[[str], None]
    words: Words
    observe: Callable[[], Observation] | None = None
    through: Sequence[Channel] | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    _ages: Ages = field(default_factory=Ages)
    _quarantined: QuarantineCounts = field(default_factory=lambda: QuarantineCounts(SECONDS_BETWEEN_COUNTS))
    _quiet: QuietTables = field(default_factory=QuietTables)
    _logs: KeptLogs = field(default_factory=lambda: KeptLogs(SECONDS_BETWEEN_COUNTS))
    _told: str = ""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run in a thread as long as the context lasts, if the lake file has `[alerts]`."""
        if self.workspace.lake.alerts is None:
            yield
            return
        with in_a_thread(self.run, self.stop, "alerts"):
            yield

    def run(self) -> None:
        """Evaluate the rules until `stop` is set. A failure is reported once, and tried again."""
        while not self.stop.is_set():
            try:
                self.step()
            except TributaryError as error:
                self._tell(f"The alerts cannot be evaluated now: {error.text(self.words)}")
            except Exception as error:  # noqa: BLE001  A fault of the alerts must not end the ingest.
                self._tell(f"The alerts cannot be evaluated now: {type(error).__name__}: {error}")
            self.stop.wait(SECONDS_BETWEEN_LOOKS)

    def step(self) -> None:
        """Evaluate the rules once, unless another process does."""
        rules = self.workspace.lake.alerts
        if rules is None:
            return
        with alone(self.workspace.state, "alerts") as is_alone:
            if not is_alone:
                return
            observed = (self.observe or self._observe)()
            alerts = judge(rules, observed, self._ages.of(observed), self.words)
            through = self.through if self.through is not None else channels(rules)
            failures = [self._send(channel, rules, alerts, observed) for channel in through]
            self._tell(" ".join(filter(None, failures)))

    def _send(
        self, channel: Channel, rules: Alerts, alerts: Sequence[Alert], observed: Observation
    ) -> str | None:
        """Send what a channel does not know yet. Return why something could not be sent, if so."""
        path = self.workspace.state.path / FILE
        everything = dict(read_sent(path))
        sent = {one.key: one for one in everything.get(channel.name, ())}
        known = [one.key for one in sent.values() if is_known(one.rule, one.subject, observed, rules)]
        found = changes(sent.values(), alerts, known)
        lake = self.workspace.lake.name
        try:
            for alert in found.new:
                channel.send(f"[{lake}] {alert.subject}: {alert.rule}", alert.text)
                since = observed.at.isoformat(timespec="seconds")
                sent[alert.key] = SentAlert(
                    rule=alert.rule, subject=alert.subject, text=alert.text, since=since
                )
            for one in found.over:
                channel.send(
                    f"[{lake}] {one.subject}: {one.rule} resolved",
                    f"It is over. Since {one.since} it was: {one.text}",
                )
                del sent[one.key]
        except NotSent as error:
            return f"{error.text(self.words)} The alert is sent again later."
        finally:
            if found.new or found.over:
                write_sent(path, {**everything, channel.name: tuple(sent.values())})
        return None

    def _observe(self) -> Observation:
        pipeline = read_status(self.workspace.state)
        running = {service.name for service in pipeline.services if service.state == "running"}
        logs = self._read_logs()
        if not {kafka.SERVICE, s3.SERVICE} <= running:
            return Observation(datetime.now(UTC), pipeline, None, logs=logs)
        tables = read_table_states(self.workspace, pipeline, self._quiet)
        return Observation(datetime.now(UTC), pipeline, tables, self._count_quarantined(), logs)

    def _read_logs(self) -> Mapping[str, DatabaseLog]:
        rules: Alerts | None = self.workspace.lake.alerts
        return {} if rules is None or rules.unread_log_gb is None else self._logs.read(self.workspace)

    def _count_quarantined(self) -> Mapping[TableName, int] | None:
        rules: Alerts | None = self.workspace.lake.alerts
        if rules is None or rules.quarantine is None:
            return None
        return self._quarantined.read(self.workspace.open_lake)

    def _tell(self, text: str) -> None:
        """Tell a person what fails, once as long as it stays the same. An empty text: nothing fails."""
        if text != self._told:
            self._told = text
            if text:
                self.tell(text)


def send_test(alerts: Alerts, lake: str) -> Iterator[tuple[str, NotSent | None]]:
    """Send a message by each channel, and yield its name with the error, if there was one."""
    for channel in channels(alerts):
        try:
            channel.send(f"[{lake}] test", "This message came from tributary alerts --test.")
        except NotSent as error:
            yield channel.name, error
        else:
            yield channel.name, None

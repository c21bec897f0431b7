"""What the buttons do: the same functions as the commands, with what they mean in words."""

from __future__ import annotations

import shlex
import threading
from dataclasses import dataclass
from functools import partial

from rich.console import Console as Terminal

from tributary.console.jobs import Job, Work
from tributary.contract.alerts import Alerts
from tributary.local import spark
from tributary.local.process import read_process
from tributary.operations import pauses
from tributary.operations.alerts.keeper import send_test
from tributary.operations.runs.follower import Follower
from tributary.operations.runs.ingest_run import IngestRun
from tributary.operations.runs.run_progress import RunProgress
from tributary.operations.runs.tasks import follow_to_the_end, start_rebuild, start_replay
from tributary.operations.snapshots.asking import read_again
from tributary.operations.verify.rounds import VerifyKeeper, Wanted
from tributary.operations.verify.view import sentence
from tributary.operations.workspace import Workspace


@dataclass(frozen=True)
class Action:
    """Something that a button does to a table.

    title    on the button, and of the job
    meaning  what it will do, for a person who has to confirm it
    command  does the same
    work     None: it cannot be done now; `meaning` says why
    """

    title: str
    icon: str
    meaning: str
    command: str
    work: Work | None


@dataclass(frozen=True)
class Actions:
    """The actions on the tables of a lake. `follower` is the ingest that this process keeps running."""

    workspace: Workspace
    follower: Follower | None = None

    def pause(self, table: str) -> Action:
        return Action(
            "Pause",
            "pause",
            f"The ingest leaves {table} as it is within seconds, until somebody resumes it. Kafka and bronze "
            "keep collecting its events, and all other tables continue.",
            f"tributary pause {shlex.quote(table)}",
            partial(_pause, self.workspace, table),
        )

    def resume(self, table: str) -> Action:
        return Action(
            "Resume",
            "play_arrow",
            f"The ingest continues with {table} where the table was, and applies what came meanwhile.",
            f"tributary resume {shlex.quote(table)}",
            partial(_resume, self.workspace, table),
        )

    def snapshot(self, table: str) -> Action:
        return Action(
            "Read again",
            "refresh",
            f"The connector reads all rows of {table} from the database once more, in small parts, while "
            "everything keeps running. At the end, rows that the database no longer has leave the lake.",
            f"tributary snapshot {shlex.quote(table)}",
            partial(_snapshot, self.workspace, table),
        )

    def verify(self, table: str) -> Action:
        return Action(
            "Verify",
            "fact_check",
            f"The database and the console compare checksums of all parts of {table}, and then the rows of "
            "parts that differ. Rows that differ are read again only if [verify] in the lake file says so.",
            f"tributary verify --full {shlex.quote(table)}",
            partial(_verify, self.workspace, table),
        )

    def rebuild(self, table: str) -> Action:
        return self._run_of_spark(
            "Rebuild",
            "construction",
            f"The Spark app builds {table} from all its events in bronze. Readers see the old rows until one "
            "commit replaces them.",
            f"tributary rebuild {shlex.quote(table)}",
            partial(_rebuild, self.workspace, table),
        )

    def replay(self, table: str) -> Action:
        return self._run_of_spark(
            "Replay",
            "replay",
            f"The Spark app applies the events of {table} in quarantine that can be read now, each at its "
            "place among the other events of its key. The others stay in quarantine.",
            f"tributary quarantine replay {shlex.quote(table)}",
            partial(_replay, self.workspace, table),
        )

    def test_alerts(self, rules: Alerts) -> Action:
        return Action(
            "Test",
            "send",
            "The console sends a test message to the webhook and the mail server of [alerts]. Their secrets "
            "have to be in the console's environment.",
            "tributary alerts --test",
            partial(_test_alerts, self.workspace, rules),
        )

    def _run_of_spark(self, title: str, icon: str, meaning: str, command: str, work: Work) -> Action:
        """Return an action that needs the Spark app for itself."""
        if self.follower is not None:
            wait = "The ingest of all tables waits meanwhile, and then continues."
            return Action(
                title, icon, f"{meaning} {wait}", command, partial(_in_between, self.follower, work)
            )
        if read_process(spark.SERVICE, self.workspace.state.run) is not None:
            busy = (
                "Another command runs the Spark app now, and nothing can run beside it. Stop that command, "
                f"then run: {command}. In the console of tributary start, this button does it."
            )
            return Action(title, icon, f"{meaning} {busy}", command, None)
        return Action(title, icon, meaning, command, work)


def _in_between(follower: Follower, work: Work, job: Job, stop: threading.Event) -> str:
    job.say("waiting until the ingest has finished its commits")
    return follower.in_between(lambda: work(job, stop))


def _pause(workspace: Workspace, table: str, _job: Job, _stop: threading.Event) -> str:
    changed = pauses.pause(workspace, [table])
    return f"{table} is paused." if changed else f"{table} was paused already."


def _resume(workspace: Workspace, table: str, _job: Job, _stop: threading.Event) -> str:
    changed = pauses.resume(workspace, [table])
    return f"{table} continues." if changed else f"{table} was not paused."


def _snapshot(workspace: Workspace, table: str, job: Job, stop: threading.Event) -> str:
    workspace.require("kafka", "s3", "connect")
    found = read_again(workspace, [table], job.say, job.say, stop)
    if stop.is_set():
        return f"{table} is still being read. A running ingest takes it further."
    if found.failed:
        return " ".join(found.failed.values())
    return f"{table} was read again. The ingest applies what was read."


def _verify(workspace: Workspace, table: str, job: Job, stop: threading.Event) -> str:
    workspace.require("kafka", "s3", "connect")
    name = workspace.open_lake.table(table).name
    found = VerifyKeeper(workspace, job.say, job.say, stop=stop).step(Wanted([name], None))
    return sentence(found[name]) if name in found else f"{table} was not compared."


def _test_alerts(workspace: Workspace, rules: Alerts, _job: Job, _stop: threading.Event) -> str:
    found = list(send_test(rules, workspace.lake.name))
    for _, error in found:
        if error is not None:
            raise error
    return " ".join(f"Sent by {name}." for name, _ in found)


def _rebuild(workspace: Workspace, table: str, job: Job, stop: threading.Event) -> str:
    job.say("the Spark app starts")
    progress = _followed(start_rebuild(workspace, _terminal(), [table]), job, stop)
    return "; ".join(
        f"{name} has {one.rows:,} rows of {one.events:,} events, and {one.quarantined:,} in quarantine"
        for name, one in progress.tables.items()
    )


def _replay(workspace: Workspace, table: str, job: Job, stop: threading.Event) -> str:
    job.say("the Spark app starts")
    run = start_replay(workspace, _terminal(), [table])
    if run is None:
        return "Nothing is in quarantine."
    progress = _followed(run, job, stop)
    return "; ".join(
        f"{name}: {one.replayed:,} applied, {one.quarantined:,} left in quarantine"
        for name, one in progress.tables.items()
    )


def _followed(run: IngestRun, job: Job, stop: threading.Event) -> RunProgress:
    def say(progress: RunProgress) -> None:
        if progress.tables:
            job.say("; ".join(f"{name}: {one.state}" for name, one in progress.tables.items()))

    return follow_to_the_end(run, say, stop)


def _terminal() -> Terminal:
    return Terminal(quiet=True)

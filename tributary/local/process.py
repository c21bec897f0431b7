"""Start server processes so that they can always be found again, and wait for and stop them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from tributary.contract.errors import TributaryError

POLL_SECONDS = 0.05
START_TIME_TOLERANCE_SECONDS = 2.0
LOG_TAIL_LINES = 6
LOG_ROTATION_BYTES = 32 * 1024 * 1024

# The shell waits for one line before it becomes the server, so every server has a record. If the starter dies
# before that, `read` meets the end of the pipe and the shell exits. No unknown server stays behind.
_WAIT_FOR_RECORD = 'read -r go && exec "$@" </dev/null'


class ServiceFailed(TributaryError):
    """A server did not start, did not become healthy or did not stop."""


class StartCancelled(Exception):
    """This part of the start gave up, because another part failed or was interrupted."""


@dataclass(frozen=True)
class Command:
    """A server to run. Pass secrets in `environment` or in a file, never in `arguments`."""

    name: str
    arguments: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None


@dataclass(frozen=True)
class ProcessRecord:
    """A started process, identified by its pid and its start time (seconds since 1970)."""

    name: str
    pid: int
    started: float
    log: str


def start_process(command: Command, run_folder: Path) -> ProcessRecord:
    """Start `command` in its own session, after recording it as `<run_folder>/<name>.json`.

    Standard output and error are appended to the command's log. Raises ServiceFailed if there is no shell.
    """
    process, record = _start(command, run_folder, stdout=None)
    _reap_when_it_ends(process)
    return record


def start_reporting_process(
    command: Command, run_folder: Path
) -> tuple[subprocess.Popen[str], ProcessRecord]:
    """Do what `start_process` does, but let the caller read the output and wait for the end."""
    return _start(command, run_folder, stdout=subprocess.PIPE)


def record_process(name: str, pid: int, log: Path, run_folder: Path) -> ProcessRecord:
    """Write the record by which the live process `pid` can be found again."""
    record = ProcessRecord(name, pid, psutil.Process(pid).create_time(), str(log))
    _write_record(record, run_folder)
    return record


def remove_record(name: str, run_folder: Path) -> None:
    """Remove the process's record, if there is one."""
    _record_path(name, run_folder).unlink(missing_ok=True)


def read_process(name: str, run_folder: Path) -> ProcessRecord | None:
    """Return the recorded process, or None if there is no record or the process has ended."""
    record = _read_record(name, run_folder)
    return record if record is not None and find_process(record) is not None else None


def has_died(name: str, run_folder: Path) -> bool:
    """Tell whether the process ended although nobody stopped it. Its record still exists then."""
    record = _read_record(name, run_folder)
    return record is not None and find_process(record) is None


def find_process(record: ProcessRecord) -> psutil.Process | None:
    """Return the live process of the record, or None. A later process with the same pid does not count."""
    try:
        process = psutil.Process(record.pid)
        same = abs(process.create_time() - record.started) <= START_TIME_TOLERANCE_SECONDS
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def wait_until_healthy(
    record: ProcessRecord,
    is_healthy: Callable[[], bool],
    timeout_seconds: float,
    cancelled: threading.Event,
) -> None:
    """Return as soon as `is_healthy()` is true.

    Raises ServiceFailed, with the end of the log, if the process ends or the time is up first. Raises
    StartCancelled if `cancelled` is set.
    """
    deadline = time.monotonic() + timeout_seconds
    while not is_healthy():
        if cancelled.is_set():
            raise StartCancelled(record.name)
        if find_process(record) is None:
            raise ServiceFailed(
                f"{record.name} ended while it was starting",
                where=record.log,
                found=read_log_tail(Path(record.log)),
                remedy="See the log for the cause",
            )
        if time.monotonic() > deadline:
            raise ServiceFailed(
                f"{record.name} was not ready after {timeout_seconds:.0f} s",
                where=record.log,
                found=read_log_tail(Path(record.log)),
                remedy="See the log for the cause. On a very busy machine, run `tributary up` again",
            )
        cancelled.wait(POLL_SECONDS)


def stop_process(
    name: str,
    run_folder: Path,
    stop_signal: signal.Signals = signal.SIGTERM,
    patience_seconds: float = 15.0,
) -> bool:
    """Stop the recorded process and its children, after `patience_seconds` by force.

    Returns False if the process was not running. Raises ServiceFailed if it survives even SIGKILL or belongs
    to another user.
    """
    record = read_process(name, run_folder)
    process = find_process(record) if record else None
    if record is None or process is None:
        remove_record(name, run_folder)
        return False
    family = [process, *_descendants(process)]
    try:
        _send(process, stop_signal)
        _wait_for_end(process, patience_seconds)
        survivors = [member for member in family if member.is_running() and not _is_zombie(member)]
        for member in survivors:
            _send(member, signal.SIGKILL)
        _, alive = psutil.wait_procs(survivors, timeout=5.0)
    except psutil.AccessDenied as error:
        raise ServiceFailed(
            f"{name} belongs to another user", found=f"pid {record.pid}", remedy="Stop it as that user"
        ) from error
    still_there = [member for member in alive if not _is_zombie(member)]
    if still_there:
        raise ServiceFailed(f"{name} does not stop", found=f"pid {[member.pid for member in still_there]}")
    remove_record(name, run_folder)
    return True


def resident_bytes(record: ProcessRecord) -> int:
    """Return the memory of the process and its children. On Linux, shared pages count once."""
    process = find_process(record)
    if process is None:
        return 0
    total = 0
    for member in [process, *_descendants(process)]:
        with suppress(psutil.NoSuchProcess):
            total += _proportional_bytes(member)
    return total


class KeptMemory:
    """The memory of processes, measured at most every some seconds: Linux counts each of their pages."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._kept: dict[ProcessRecord, tuple[float, int]] = {}

    def __call__(self, record: ProcessRecord) -> int:
        until, found = self._kept.get(record, (0.0, 0))
        if time.monotonic() >= until:
            found = resident_bytes(record)
            self._kept[record] = (time.monotonic() + self._seconds, found)
        return found


_PYTHON_FRAME = re.compile(r'^  File ".*", line \d+.*\n(    .*\n)*', re.MULTILINE)


def read_log_tail(log: Path, lines: int = LOG_TAIL_LINES) -> str:
    """Return the last meaningful lines of a log, without empty lines and stack frames of Java and Python."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 64 * 1024))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return "(no log)"
    told = [line for line in _PYTHON_FRAME.sub("", text).splitlines() if line.strip()]
    told = [line for line in told if not line.lstrip().startswith("at ")]
    return "\n".join(told[-lines:]) or "(the log is empty)"


def _start(
    command: Command, run_folder: Path, stdout: int | None
) -> tuple[subprocess.Popen[str], ProcessRecord]:
    command.log.parent.mkdir(parents=True, exist_ok=True)
    _rotate_log(command.log)
    with open(command.log, "ab", opener=_private_file) as log:
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _WAIT_FOR_RECORD, "sh", *command.arguments],
                stdin=subprocess.PIPE,
                stdout=log if stdout is None else stdout,
                stderr=log,
                text=True,
                errors="replace",
                env=dict(command.environment),
                cwd=command.folder,
                start_new_session=True,
            )
        except OSError as error:
            raise ServiceFailed(
                f"{command.name} could not be started", where=command.arguments[0], found=str(error)
            ) from error
    record = record_process(command.name, process.pid, command.log, run_folder)
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as gate:
        gate.write("go\n")
    return process, record


def _reap_when_it_ends(process: subprocess.Popen[str]) -> None:
    # If nobody waits for it, a server that ends stays a zombie as long as this process lives.
    threading.Thread(target=process.wait, name=f"reap-{process.pid}", daemon=True).start()


def _wait_for_end(process: psutil.Process, patience_seconds: float) -> None:
    deadline = time.monotonic() + patience_seconds
    while time.monotonic() < deadline:
        if not process.is_running() or _is_zombie(process):
            return
        time.sleep(POLL_SECONDS)


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _proportional_bytes(process: psutil.Process) -> int:
    try:
        memory = process.memory_full_info()
    except psutil.AccessDenied:
        return int(process.memory_info().rss)
    return int(getattr(memory, "pss", memory.rss))


def _rotate_log(log: Path) -> None:
    if log.exists() and log.stat().st_size > LOG_ROTATION_BYTES:
        log.replace(log.with_suffix(log.suffix + ".1"))


def _private_file(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _record_path(name: str, run_folder: Path) -> Path:
    return run_folder / f"{name}.json"


def _write_record(record: ProcessRecord, run_folder: Path) -> None:
    run_folder.mkdir(parents=True, exist_ok=True)
    path = _record_path(record.name, run_folder)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(record)))
    draft.replace(path)


def _read_record(name: str, run_folder: Path) -> ProcessRecord | None:
    try:
        return ProcessRecord(**json.loads(_record_path(name, run_folder).read_text()))
    except FileNotFoundError:
        return None
    except (json.JSONDecodeError, TypeError) as error:
        raise ServiceFailed(
            f"the record of {name} is damaged",
            where=str(_record_path(name, run_folder)),
            found=str(error),
            remedy=f"Check that no {name} of this state folder is running, then remove the file",
        ) from error

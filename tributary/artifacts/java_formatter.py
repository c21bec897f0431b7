"""Format the project's own Java with palantir-java-format, one pinned program for each platform.

The program is compiled to machine code. The formatter's jar would need the module jdk.compiler, which a Java
runtime without a compiler does not have.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tributary.artifacts.fetch import fetch
from tributary.artifacts.lock import platform_name, read_lock
from tributary.contract.errors import TributaryError

LOCK = Path(__file__).with_name("java_formatter.lock.json")


class NotFormatted(TributaryError):
    """A source file is not formatted, or cannot be formatted."""


class NoFormatter(TributaryError):
    """There is no formatter for this platform."""


def format_java(sources: Sequence[Path]) -> None:
    """Format the files in place. Raises FetchError, LockError, NoFormatter or NotFormatted."""
    _run("--replace", sources)


def check_format(sources: Sequence[Path]) -> None:
    """Raise NotFormatted if `format_java` would change a file. Also raises the errors of `format_java`."""
    if unformatted := _run("--dry-run", sources).split():
        raise NotFormatted(
            "Java code of the project is not formatted",
            where=" ".join(unformatted),
            remedy="Run `python -m tributary.local.java_checks --fix`.",
        )


def _run(task: str, sources: Sequence[Path]) -> str:
    command = [str(_formatter()), "--palantir", task, *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotFormatted(
            "The formatter cannot read Java code of the project",
            found=done.stderr.strip() or f"exit status {done.returncode}",
        )
    return done.stdout


def _formatter() -> Path:
    lock = read_lock(LOCK)
    artifacts = tuple(lock.on_this_machine())
    if not artifacts:
        raise NoFormatter(
            "There is no formatter of Java for this platform",
            found=platform_name(),
            expected=f"one of {', '.join(lock.sets)}",
        )
    (program,) = fetch(artifacts).values()
    if not os.access(program, os.X_OK):
        program.chmod(0o755)
    return program

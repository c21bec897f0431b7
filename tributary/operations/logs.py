"""The logs of the parts of a lake on this machine: their ends, line by line, without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tributary.contract.lake import Lake
from tributary.local import spark
from tributary.local.all_servers import SERVICES
from tributary.local.state import LocalSettings, StateFolder

Level = Literal["error", "warning", "info"]
LEVELS: tuple[Level, ...] = ("error", "warning", "info")
"""From the worst on."""

PARTS = (*SERVICES, *spark.APPS)
BYTES_AT_THE_END = 256 * 1024
_LONGEST_ENTRY = 20_000
_SHORTEST_SECRET = 6
HIDDEN = "•••"

_LEVEL_OF = {
    **dict.fromkeys(("ERROR", "FATAL", "PANIC", "SEVERE", "CRITICAL"), "error"),
    **dict.fromkeys(("WARN", "WARNING"), "warning"),
}
_BEGIN = re.compile(r"\[?(?:\d{4}-\d\d-\d\d[ T] ?)?\d{1,2}:\d\d:\d\d\b|\[\w+\] [EWIDT] ")
_LEVEL = re.compile(r"\b(ERROR|FATAL|PANIC|SEVERE|CRITICAL|WARNING|WARN)\b|\[(Warning|Error)\]|\] ([EW]) ")
_BEGIN_OF_LINE = 120
"""Where a line's level can be, at the latest. Later, the word belongs to the text."""


@dataclass(frozen=True)
class LogEntry:
    """One entry of a log, with the lines that belong to it, such as those of a stack trace."""

    part: str
    level: Level
    text: str


@dataclass(frozen=True)
class Redaction:
    """Hides secrets in a text: those that are known, and what looks like one."""

    secrets: tuple[str, ...]

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redaction:
        """Return a redaction of these secrets. The longest come first, as one can be a part of another."""
        known = {secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}
        return cls(tuple(sorted(known, key=len, reverse=True)))

    def __call__(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        for pattern, replacement in _SECRETS:
            text = pattern.sub(replacement, text)
        return text


_NAMES = (
    r"pass(?:word|wd|phrase)?|pwd|secret|token|salt|api[_-]?key"
    r"|access[_-]?key(?:[_-]?id)?|secret[_-]?key|credentials?"
)
_SECRETS = (
    # name=value, name: value and "name": "value". Kafka Connect prints [hidden] itself.
    (
        re.compile(
            rf"""(?i)(["']?[\w.-]*(?:{_NAMES})["']?\s*[=:]\s*)(?!\[hidden\])("[^"]*"|'[^']*'|[^\s,;&)\]}}]+)"""
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(?i)\b((?:ENCRYPTED )?PASSWORD )('(?:[^']|'')*')"), rf"\1{HIDDEN}"),
    (re.compile(r"(?i)\b(IDENTIFIED BY )('(?:[^']|'')*')"), rf"\1{HIDDEN}"),
    (re.compile(r"(://[^/\s:@]+:)[^@\s/]+(?=@)"), rf"\1{HIDDEN}"),
    (re.compile(r"(?i)\b(authorization\s*[:=]\s*\w+\s+)\S+"), rf"\1{HIDDEN}"),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), HIDDEN),
    (re.compile(r"(https://hooks\.slack\.com/services/)\S+"), rf"\1{HIDDEN}"),
)


def known_secrets(lake: Lake, settings: LocalSettings | None) -> tuple[str, ...]:
    """Return the secrets of the state folder, and those in the environment that the lake file names."""
    found: list[str] = []
    if settings is not None:
        secrets = settings.secrets.all_of(source.name for source in lake.sources)
        found += [secret.get_secret_value() for secret in secrets]
    found += [os.environ.get(variable, "") for variable in lake.secret_variables]
    return tuple(found)


def read_log(
    state: StateFolder, part: str, redaction: Redaction, at_the_end: int = BYTES_AT_THE_END
) -> tuple[LogEntry, ...]:
    """Return the last entries of a part's log, oldest first. None if there is no log."""
    return parse_log(part, redaction(_end_of(state.log(part), at_the_end)))


def parse_log(part: str, text: str) -> tuple[LogEntry, ...]:
    """Return the entries of a text. A line without a time belongs to the entry before it."""
    entries: list[list[str]] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if _BEGIN.match(line) or not entries:
            entries.append([line])
        else:
            entries[-1].append(line)
    return tuple(LogEntry(part, _level_of(lines[0]), "\n".join(lines)[:_LONGEST_ENTRY]) for lines in entries)


def chosen(
    entries: Iterable[LogEntry], at_least: Level = "info", having: str = "", most: int = 300
) -> Sequence[LogEntry]:
    """Return the latest entries of at least this level that have this text, in any case."""
    wanted = LEVELS[: LEVELS.index(at_least) + 1]
    needle = having.casefold().strip()
    found = [one for one in entries if one.level in wanted and needle in one.text.casefold()]
    return found[-most:]


def _level_of(line: str) -> Level:
    found = _LEVEL.search(line[:_BEGIN_OF_LINE])
    if found is None:
        return "info"
    word = next(filter(None, found.groups())).upper()
    return "error" if word == "E" or _LEVEL_OF.get(word) == "error" else "warning"


def _end_of(path: Path, size: int) -> str:
    try:
        with path.open("rb") as file:
            length = os.fstat(file.fileno()).st_size
            file.seek(max(0, length - size))
            text = file.read(size).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    # The first line is a part of one.
    return text if length <= size else text.partition("\n")[2]

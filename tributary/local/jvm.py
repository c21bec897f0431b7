"""Knows with which flags a small Java server starts fast and stays small on a machine that it shares."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tributary.local.process import Command

# One collector thread, and only the quick compiler: a server that lives for minutes spends more on optimising
# itself than it ever gains, and start-up on two cores is what a person waits for.
_QUICK_START = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
)
_LOG4J = """\
log4j.rootLogger={level}, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%d{{ISO8601}} %-5p [%t] %m (%c{{1}})%n
"""


def java_command(
    name: str,
    java: Path,
    classpath: Sequence[Path],
    main_class: str,
    arguments: Sequence[str],
    heap_megabytes: int,
    scratch: Path,
    log: Path,
    properties: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Command:
    """The command of a Java server. The long class path goes by environment, so that `ps` stays readable.

    `scratch` is for the server that is started next: native libraries are unpacked to it and uploads buffered
    in it. It is emptied of what one that was killed has left.
    """
    empty_folder(scratch)
    heap = (f"-Xms{min(64, heap_megabytes)}m", f"-Xmx{heap_megabytes}m")
    defines = [f"-D{key}={value}" for key, value in (properties or {}).items()]
    return Command(
        name,
        [str(java), *heap, *_QUICK_START, f"-Djava.io.tmpdir={scratch}", *defines, main_class, *arguments],
        log=log,
        environment={
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "CLASSPATH": os.pathsep.join(map(str, classpath)),
            **(environment or {}),
        },
    )


def empty_folder(folder: Path) -> None:
    """Makes it, or removes what is in it."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    folder.mkdir()


def write_log4j_properties(path: Path, level: str, quiet: Mapping[str, str] | None = None) -> None:
    """A log4j 1 configuration to standard output; `quiet` gives single loggers another level."""
    loggers = "".join(f"log4j.logger.{logger}={own}\n" for logger, own in (quiet or {}).items())
    path.write_text(_LOG4J.format(level=level) + loggers)

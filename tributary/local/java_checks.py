"""Check the project's own Java: the format, and that it compiles without a warning.

`python -m tributary.local.java_checks` checks it. With `--fix` it formats the files first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import connectors
import spark_app
from connectors.plugins import build_plugins
from tributary.artifacts.java_formatter import NoFormatter, check_format, format_java
from tributary.contract.errors import TributaryError
from tributary.local.spark_jars import classes_jar

_ROOMS = (Path(connectors.__file__).parent, Path(spark_app.__file__).parent)


def main(arguments: Sequence[str]) -> int:
    """Return 0 if the Java passes the checks, else 1."""
    sources = java_sources()
    try:
        if _parser().parse_args(arguments).fix:
            format_java(sources)
        _check_format_where_possible(sources)
        # Both calls compile only what has changed. A warning is an error.
        classes_jar()
        build_plugins()
    except TributaryError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def java_sources() -> tuple[Path, ...]:
    """Return all files of the project's own Java."""
    return tuple(sorted(source for room in _ROOMS for source in room.rglob("*.java")))


def _check_format_where_possible(sources: Sequence[Path]) -> None:
    try:
        check_format(sources)
    except NoFormatter as error:
        # All other checks still work on such a machine.
        print(f"The format of the Java code was not checked. {error}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tributary.local.java_checks", description=__doc__)
    parser.add_argument("--fix", action="store_true", help="format the files first")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Fetch the pinned files in advance, so that everything works without a network later."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from tributary.artifacts.fetch import fetch
from tributary.artifacts.java import find_java
from tributary.artifacts.lock import platform_name, read_lock
from tributary.artifacts.npm import install_npm_packages
from tributary.artifacts.pip import LAMBDA, Target, fetch_wheels, install_packages
from tributary.artifacts.progress import shown_on
from tributary.contract.errors import TributaryError


def main() -> None:
    arguments = _arguments()
    console = Console(stderr=True)
    try:
        artifacts = [artifact for path in arguments.locks for artifact in read_lock(path).on_this_machine()]
        with shown_on(console) as progress:
            fetch(artifacts, progress)
        for requirements in arguments.wheels:
            fetch_wheels(requirements, Target(platform_name()))
        for requirements in arguments.functions:
            fetch_wheels(requirements, LAMBDA)
        for requirements in arguments.packages:
            install_packages(requirements, "pip")
        for folder in arguments.npm:
            install_npm_packages(folder, "npm")
        console.print(f"using {find_java()}", highlight=False, soft_wrap=True)
    except TributaryError as error:
        console.print(str(error), style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        console.print("stopped; completed downloads are kept")
        sys.exit(130)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tributary.artifacts", description=__doc__)
    parser.add_argument("locks", nargs="*", type=Path, metavar="LOCK", help="a lock file of Maven artifacts")
    parser.add_argument(
        "--wheels",
        action="append",
        default=[],
        type=Path,
        metavar="REQUIREMENTS",
        help="a requirements file with hashes, whose wheels go into the Spark app's package",
    )
    parser.add_argument(
        "--function",
        dest="functions",
        action="append",
        default=[],
        type=Path,
        metavar="REQUIREMENTS",
        help="a requirements file with hashes, whose wheels go into a function on AWS",
    )
    parser.add_argument(
        "--packages",
        action="append",
        default=[],
        type=Path,
        metavar="REQUIREMENTS",
        help="a requirements file with hashes, whose packages run in a process of their own",
    )
    parser.add_argument(
        "--npm",
        action="append",
        default=[],
        type=Path,
        metavar="FOLDER",
        help="a folder with a lock of npm's",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()

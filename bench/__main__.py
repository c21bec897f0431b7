"""`python -m bench`: choose the benchmarks to run and the folder for their results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryFile
from typing import get_args

from rich.console import Console

from bench.acceleration import measure_with
from bench.benchmarks import BENCHMARKS, run_benchmark
from bench.results import RESULTS, Figure
from bench.table import read_figures
from tributary.contract.acceleration import Acceleration

QUICK_RESULTS = RESULTS / "quick"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen benchmarks. Return 0 if each has a result, and 1 if a result is missing or wrong."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - BENCHMARKS.keys():
        parser.error(f"unknown benchmark: {', '.join(sorted(unknown))}; choose from {', '.join(BENCHMARKS)}")
    names = options.names or [name for name, of in BENCHMARKS.items() if of.quick or not options.quick]
    folder = options.into or (QUICK_RESULTS if options.quick else RESULTS)
    measure_with(options.acceleration)
    if problem := _problem_of_folders(folder, options.against):
        parser.error(problem)
    console = Console()
    failed = [name for name in names if not _run_apart(name, options, folder, console)]
    if failed:
        print(f"No result: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Tributary's performance.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="use little data and finish in a few minutes")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="the folder for the results")
    parser.add_argument(
        "--acceleration",
        choices=get_args(Acceleration),
        default="auto",
        help="measure the app's Java (auto), or plain PySpark (off)",
    )
    parser.add_argument(
        "--against", type=Path, metavar="FOLDER", help="show the results in this folder next to the new ones"
    )
    return parser


def _problem_of_folders(into: Path, against: Path | None) -> str | None:
    """Find a wrong folder now. Otherwise it would show only after the benchmarks, hours later."""
    if against is not None and not against.is_dir():
        return f"--against: the folder {against} does not exist; name one with earlier results"
    try:
        into.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=into).close()
    except OSError as error:
        return f"--into: cannot write results to {into}: {error.strerror}"
    return None


def _run_apart(name: str, options: argparse.Namespace, folder: Path, console: Console) -> bool:
    """Run a benchmark in its own process. A JVM that an earlier benchmark warmed up would flatter it."""
    console.print(f"[bold]{name}[/bold] …")
    earlier = _earlier(name, options.against)
    process = get_context("spawn").Process(
        target=run_benchmark, args=(name, folder, earlier), kwargs={"quick": options.quick}
    )
    process.start()
    process.join()
    return process.exitcode == 0


def _earlier(name: str, folder: Path | None) -> tuple[Figure, ...]:
    path = None if folder is None else folder / f"{name}.json"
    return read_figures(path) if path is not None and path.exists() else ()


if __name__ == "__main__":
    sys.exit(main())

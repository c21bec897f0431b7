"""`python -m bench`: which benchmarks there are; each runs in a process of its own, and its results are kept
and shown."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console

from bench.results import RESULTS, Figure, Results, write_results
from bench.table import print_results, read_figures
from contract.errors import TributaryError

QUICK_RESULTS = RESULTS / "quick"


@dataclass(frozen=True)
class Benchmark:
    """`module.run` with its settings of the name, and with `quick` ones where there are any."""

    module: str
    full: str = "FULL"
    quick: str | None = "QUICK"


BENCHMARKS = {
    "freshness": Benchmark("bench.freshness"),
    "freshness_idle_tables": Benchmark("bench.freshness", full="IDLE_TABLES", quick=None),
    "freshness_backfill": Benchmark("bench.freshness", full="BACKFILL", quick=None),
    "catch_up": Benchmark("bench.catch_up"),
    "initial_load": Benchmark("bench.initial_load"),
    "flat": Benchmark("bench.flat"),
    "commit_cost": Benchmark("bench.commit_cost"),
    "start": Benchmark("bench.start"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where each benchmark has a result, 1 where one has none, or a wrong one."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - BENCHMARKS.keys():
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    names = options.names or [name for name, of in BENCHMARKS.items() if of.quick or not options.quick]
    folder = options.into or (QUICK_RESULTS if options.quick else RESULTS)
    console = Console()
    failed = [name for name in names if not _run_apart(name, options, folder, console)]
    if failed:
        print(f"No result: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures what Tributary does.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="all in about two minutes, on little data")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="where to keep the results")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="show those of an earlier run beside")
    return parser


def _run_apart(name: str, options: argparse.Namespace, folder: Path, console: Console) -> bool:
    """A process of its own: a JVM that another benchmark has warmed would flatter this one."""
    console.print(f"[bold]{name}[/bold] …")
    earlier = _earlier(name, options.against)
    process = get_context("spawn").Process(target=_run, args=(name, options.quick, folder, earlier))
    process.start()
    process.join()
    return process.exitcode == 0


def _run(name: str, quick: bool, folder: Path, earlier: tuple[Figure, ...]) -> None:
    benchmark = BENCHMARKS[name]
    module = import_module(benchmark.module)
    settings = getattr(module, benchmark.quick if quick and benchmark.quick else benchmark.full)
    try:
        results: Results = module.run(settings)
    except TributaryError as error:
        sys.exit(f"{name}: {error}")
    write_results(results, folder)
    print_results(results, Console(), earlier)


def _earlier(name: str, folder: Path | None) -> tuple[Figure, ...]:
    path = None if folder is None else folder / f"{name}.json"
    return read_figures(path) if path is not None and path.exists() else ()


if __name__ == "__main__":
    sys.exit(main())

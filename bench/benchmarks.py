"""The list of benchmarks, and how to run one."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from rich.console import Console

from bench.results import Figure, Results, write_results
from bench.table import print_results
from tributary.contract.errors import TributaryError


@dataclass(frozen=True)
class Benchmark:
    """A call of `module.run`, and the names of the module's full and quick settings. None: no quick run."""

    module: str
    full: str = "FULL"
    quick: str | None = "QUICK"


BENCHMARKS = {
    "freshness": Benchmark("bench.freshness"),
    "freshness_idle_tables": Benchmark("bench.freshness", full="IDLE_TABLES", quick=None),
    "freshness_backfill": Benchmark("bench.freshness", full="BACKFILL", quick=None),
    "freshness_kinesis": Benchmark("bench.kinesis"),
    "catch_up_kinesis": Benchmark("bench.kinesis", full="CATCH_UP", quick="QUICK_CATCH_UP"),
    "many_tables": Benchmark("bench.many_tables"),
    "many_tables_thousand": Benchmark("bench.many_tables", full="THOUSAND", quick=None),
    "console": Benchmark("bench.console"),
    "endurance": Benchmark("bench.endurance", quick=None),
    "catch_up": Benchmark("bench.catch_up"),
    "catch_up_dense": Benchmark("bench.catch_up", full="DENSE_KEYS", quick=None),
    "catch_up_large": Benchmark("bench.catch_up", full="LARGE", quick=None),
    "catch_up_large_dense": Benchmark("bench.catch_up", full="LARGE_DENSE_KEYS", quick=None),
    "catch_up_batches": Benchmark("bench.catch_up", full="BATCHES", quick=None),
    "catch_up_avro": Benchmark("bench.catch_up", full="AVRO", quick=None),
    "each_step": Benchmark("bench.each_step"),
    "catch_up_memory": Benchmark("bench.catch_up_memory"),
    "initial_load": Benchmark("bench.initial_load"),
    "flat": Benchmark("bench.flat"),
    "flat_age": Benchmark("bench.flat_age", quick=None),
    "compaction": Benchmark("bench.compaction"),
    "commit_cost": Benchmark("bench.commit_cost"),
    "commit_cost_at_pace_of_s3": Benchmark("bench.commit_cost", full="AT_PACE_OF_S3", quick=None),
    "cold": Benchmark("bench.cold"),
    "start": Benchmark("bench.start"),
    "verify": Benchmark("bench.verify"),
}


def run_benchmark(name: str, folder: Path, earlier: tuple[Figure, ...], *, quick: bool) -> None:
    """Run the benchmark, save its results in the folder and print them. Exit if it fails."""
    benchmark = BENCHMARKS[name]
    module = import_module(benchmark.module)
    settings = getattr(module, benchmark.quick if quick and benchmark.quick else benchmark.full)
    try:
        results: Results = module.run(settings)
    except TributaryError as error:
        sys.exit(f"{name}: {error}")
    write_results(results, folder)
    print_results(results, Console(), earlier)

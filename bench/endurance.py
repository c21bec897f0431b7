"""Endurance: an hour of the freshness workload, with the memory, threads, files and disk space in use."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from bench import freshness
from bench.freshness import Observed, Settings, observe, ways
from bench.resources import Held
from bench.results import Figure, Results, quantile

FULL = Settings("endurance", seconds=3600.0, warm_up_seconds=120.0, seconds_between_samples=30.0)

_QUARTERS = ("first", "second", "third", "last")
_HELD: Sequence[tuple[str, str, Callable[[Held], float]]] = (
    ("resident memory", "MiB", lambda held: held.resident / 2**20),
    ("threads", "threads", lambda held: float(held.threads)),
    ("open files", "files", lambda held: float(held.open_files)),
)


def run(settings: Settings = FULL) -> Results:
    """Run the freshness benchmark and add the figures of each quarter of its time."""
    observed = observe(settings)
    results = freshness.results_of(observed, settings)
    return replace(
        results,
        figures=(*_freshness_figures(observed), *_resource_figures(observed), *results.figures),
        series={**results.series, **dict(_curves(observed))},
    )


def quarter_of(at: float, began: float, ended: float) -> int:
    """Return the quarter of the run, 0 to 3, that the moment `at` falls into."""
    return min(3, max(0, int(4 * (at - began) / (ended - began))))


def _freshness_figures(observed: Observed) -> Iterator[Figure]:
    seconds = observed.ended - observed.began
    for number, name in enumerate(_QUARTERS):
        read = [way.read for way in ways(observed) if quarter_of(way.at, 0.0, seconds) == number]
        for label, share in (("p50", 0.5), ("p95", 0.95)):
            yield Figure(f"freshness {label}", round(quantile(read, share), 3), "s", {"quarter": name})


def _resource_figures(observed: Observed) -> Iterator[Figure]:
    """Return the median resource use in the first and in the last quarter."""
    for number in (0, 3):
        samples = [
            sample
            for sample in observed.resources
            if quarter_of(sample.at, observed.began, observed.ended) == number
        ]
        of = {"quarter": _QUARTERS[number]}
        for name in samples[0].processes:
            for what, unit, value in _HELD:
                held = statistics.median(value(sample.processes[name]) for sample in samples)
                yield Figure(what, round(held, 1), unit, {"process": name, **of})
        for folder in samples[0].folders:
            size = statistics.median(sample.folders.get(folder, 0) for sample in samples)
            yield Figure("on disk", round(size / 2**20, 1), "MiB", {"folder": folder, **of})


def _curves(observed: Observed) -> Iterator[tuple[str, tuple[tuple[float, float], ...]]]:
    """Return the curves of memory and disk space: seconds since the start, and MiB."""
    sizes: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for sample in observed.resources:
        at = round(sample.at - observed.began, 1)
        for name, held in sample.processes.items():
            sizes[f"resident memory {name}"].append((at, round(held.resident / 2**20, 1)))
        for folder, size in sample.folders.items():
            sizes[f"on disk {folder}"].append((at, round(size / 2**20, 1)))
    for name, curve in sizes.items():
        yield name, tuple(curve)

"""Memory that a catch-up takes, for a backlog and for one ten times as large."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context

from bench import catch_up
from bench.events import SPARSE
from bench.results import Figure, Results

Peaks = Mapping[str, float]
"""Peaks by name, in MiB."""


@dataclass(frozen=True)
class Settings:
    """The settings of a measurement, in which each contender drains each backlog.

    backlogs   sizes in events
    batch      events in a commit
    memory     barely more than a commit needs. With more, Java keeps more garbage the longer it runs.
    preloaded  rows in the table before the events
    """

    contenders: tuple[str, ...] = ("kafka, bare", "bronze, bare")
    backlogs: tuple[int, ...] = (500_000, 5_000_000)
    batch: int = 250_000
    memory: str = "1g"
    preloaded: int = 1_000_000


FULL = Settings()
QUICK = Settings(contenders=("kafka, bare",), backlogs=(20_000, 40_000), batch=10_000, preloaded=20_000)


def run(settings: Settings = FULL) -> Results:
    measured = {
        contender: [_peaks(_of(settings, contender, backlog)) for backlog in settings.backlogs]
        for contender in settings.contenders
    }
    return Results("catch_up_memory", asdict(settings), tuple(figures(settings.backlogs, measured)))


def figures(backlogs: Sequence[int], measured: Mapping[str, Sequence[Peaks]]) -> Iterable[Figure]:
    """Return each contender's peaks for each backlog, and the ratio of the largest to the smallest.

    `measured` holds the peaks by contender, in the order of `backlogs`.
    """
    for contender, of_backlogs in measured.items():
        for backlog, peaks in zip(backlogs, of_backlogs, strict=True):
            for name, value in peaks.items():
                yield Figure(name, value, "MiB", {"of": contender, "events": backlog})
        for name, smallest in of_backlogs[0].items():
            ratio = round(of_backlogs[-1][name] / smallest, 2)
            yield Figure("largest backlog to smallest", ratio, "×", {"of": contender, "what": name})


def _of(settings: Settings, contender: str, backlog: int) -> catch_up.Settings:
    return catch_up.Settings(
        events=backlog,
        preloaded=settings.preloaded,
        keys=SPARSE,
        rounds=1,
        warm_ups=0,
        batches={contender: (settings.batch,)},
        memory=settings.memory,
    )


def _peaks(settings: catch_up.Settings) -> Peaks:
    """Measure in a separate process, because a JVM does not return memory that it once took."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
        results = process.submit(catch_up.run, settings).result()
    return {figure.name: figure.value for figure in results.figures if figure.unit == "MiB"}

"""What each step in Java saves of a whole catch-up: the catch-up with this step alone in plain PySpark.

All take turns in one JVM, on the same events. Every table has to match the events, so the benchmark is also a
test of the mixtures.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from bench.catch_up import Arena, OursContender, Run, checked_run, prepared_arena
from bench.catch_up import Settings as CatchUp
from bench.events import DENSE
from bench.results import Figure, Results
from spark_app.jvm import java_steps
from spark_app.plain import plain_steps
from spark_app.steps import steps
from spark_app.steps.steps import Steps

ALL_IN_JAVA, ALL_IN_PLAIN = "all in Java", "all in plain PySpark"
_READING = ("open_payload", "read_payload", "open_shape", "read_shape")
STEPS: Mapping[str, tuple[str, ...]] = {
    ALL_IN_JAVA: (),
    "read Kafka": ("read_kafka_events",),
    "decode": ("projections",),
    "decode, and split schema and payload": ("projections", "schema_and_payload", "canonical"),
    "decode, and read the payload": ("projections", *_READING),
    "survey": ("change_counter",),
    "hold in buckets": ("buckets",),
    "partial fold": ("partial_fold",),
    "write": ("row_upsert",),
}
"""The functions of `Steps` that are plain, by what they do.

Only a `select` can send values to a function in Python. A step that does so cannot be in Java's decoding."""
OF_BRONZE: Mapping[str, tuple[str, ...]] = {
    ALL_IN_JAVA: (),
    "read bronze": ("read_bronze_events",),
    "find offsets in bronze": ("topics_in_metadata", "offsets_in_metadata"),
}


@dataclass(frozen=True)
class Settings:
    """The settings: the events of a catch-up in one commit, and how often each mixture runs.

    has_plain  whether all in plain PySpark runs, too
    """

    name: str = "each_step"
    events: int = 120_000
    preloaded: int = 40_000
    warm_ups: int = 1
    rounds: int = 2
    has_plain: bool = True


FULL = Settings()
QUICK = Settings(events=20_000, preloaded=5_000, warm_ups=0, rounds=1, has_plain=False)


def run(settings: Settings = FULL) -> Results:
    """Measure every mixture from Kafka, and those about bronze from bronze. Raises WrongResult."""
    folder = Path(tempfile.mkdtemp(prefix="tributary-each-step-"))
    work = CatchUp(settings.events, settings.preloaded, DENSE, settings.rounds, batches={})
    try:
        with prepared_arena(work, folder) as arena:
            found = [
                *_measure(arena, settings, "kafka", STEPS),
                *_measure(arena, settings, "bronze", OF_BRONZE),
            ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Results(settings.name, asdict(settings), tuple(found))


def figures(origin: str, runs: Sequence[Run]) -> Iterator[Figure]:
    """Yield the mean seconds and CPU seconds of each mixture, and how much more these are than all in Java.

    A run's contender is its mixture."""
    for measure, unit, more in (("seconds", "s", "longer"), ("cpu_seconds", "CPU s", "more CPU time")):
        means = {
            name: statistics.mean(getattr(one, measure) for one in runs if one.contender == name)
            for name in dict.fromkeys(one.contender for one in runs)
        }
        for name, seconds in means.items():
            of = {"plain": f"{name}, from {origin}"}
            yield Figure(measure.replace("_", " "), round(seconds, 2), unit, of)
            if name != ALL_IN_JAVA:
                yield Figure(more, round(100 * (seconds / means[ALL_IN_JAVA] - 1)), "%", of)


def _measure(
    arena: Arena,
    settings: Settings,
    origin: Literal["kafka", "bronze"],
    mixtures: Mapping[str, tuple[str, ...]],
) -> Iterator[Figure]:
    shared = OursContender(origin, arena, "schemas", origin)
    shared.preload()
    # Spark keeps a group's consumer, and refuses it with the settings of the other way to read Kafka.
    reader = replace(shared, group="plain")
    if origin == "kafka":
        reader.preload()
    wanted = [*mixtures.items()]
    if settings.has_plain:
        wanted.append((ALL_IN_PLAIN, ()))
    runs = []
    for number in range(settings.warm_ups + settings.rounds):
        # The first one meets a colder disk, so the order alternates.
        for name, plain in wanted if number % 2 else wanted[::-1]:
            is_plain = name == ALL_IN_PLAIN
            contender = reader if is_plain or "read_kafka_events" in plain else shared
            with _mixture(plain, is_plain=is_plain):
                done = checked_run(contender, settings.events, arena, is_warm=number >= settings.warm_ups)
            runs.append(replace(done, contender=name))
    yield from figures(origin, [one for one in runs if one.is_warm])


@contextmanager
def _mixture(plain: tuple[str, ...], *, is_plain: bool) -> Iterator[None]:
    """Let the process use Java, except for the plain functions, as long as the context lasts."""
    before = steps.steps()
    steps.use(cast(Steps, plain_steps if is_plain else _Mixture(plain)))
    try:
        yield
    finally:
        steps.use(before)


@dataclass(frozen=True)
class _Mixture:
    plain: tuple[str, ...]

    @property
    def name(self) -> str:
        """A name of its own: the app keeps the decoding that it has built by the name of its steps."""
        return f"accelerated, but {', '.join(self.plain)}"

    def __getattr__(self, name: str) -> Any:
        return getattr(plain_steps if name in self.plain else java_steps, name)

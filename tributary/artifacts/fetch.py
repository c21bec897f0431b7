"""Download pinned artifacts from the Maven repository to the cache and check them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from tributary.artifacts.cache import cache_root, empty_folder, is_intact, locked, sha256_of
from tributary.artifacts.lock import Artifact
from tributary.contract.errors import TributaryError

THREADS = 8
ATTEMPTS = 3
PAUSE_SECONDS = 1.0
TIMEOUT_SECONDS = 30
"""The longest time without a byte from the repository. A slow download may take longer."""


class FetchError(TributaryError):
    """An artifact could not be fetched, or the download is not the pinned file."""


@dataclass(frozen=True)
class FetchProgress:
    """The progress of a fetch. Only files that are not cached count; sizes are in bytes."""

    files: int
    files_total: int
    bytes: int
    bytes_total: int


def fetch(
    artifacts: Iterable[Artifact], progress: Callable[[FetchProgress], None] | None = None
) -> dict[Artifact, Path]:
    """Return the path of each artifact in the cache, after fetching the missing or damaged ones.

    Without missing files, the network is not used and `progress` is not called. Otherwise several threads
    call `progress`, one at a time. Raises FetchError.
    """
    wanted = {artifact: cached_path(artifact) for artifact in artifacts}
    if _missing(wanted):
        with locked(cache_root() / "maven.lock"):
            # Another process may have fetched them while this one waited for the lock.
            _fetch_all(_missing(wanted), progress or _silent)
    return wanted


def cached_path(artifact: Artifact) -> Path:
    """Return the artifact's path in the cache."""
    return cache_root() / "maven" / artifact.path


def _missing(wanted: dict[Artifact, Path]) -> dict[Artifact, Path]:
    return {artifact: path for artifact, path in wanted.items() if not is_intact(path, artifact.sha256)}


def _silent(_: FetchProgress) -> None:
    pass


def _fetch_all(missing: dict[Artifact, Path], progress: Callable[[FetchProgress], None]) -> None:
    if not missing:
        return
    tally = _Tally(missing, progress)
    largest_first = sorted(missing.items(), key=lambda wanted: -wanted[0].size)
    with (
        empty_folder(cache_root() / "maven.partial") as partial,
        ThreadPoolExecutor(THREADS, thread_name_prefix="fetch") as threads,
    ):
        try:
            fetches = [threads.submit(_fetch_one, *wanted, partial, tally) for wanted in largest_first]
            for finished in as_completed(fetches):
                finished.result()
        except BaseException:
            # Also on Ctrl-C, the threads stop at the next chunk that they receive.
            tally.stopped.set()
            threads.shutdown(cancel_futures=True)
            raise


def _fetch_one(artifact: Artifact, path: Path, partial: Path, tally: _Tally) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            arrived = _download(artifact, partial / f"{artifact.sha256}.{attempt}", tally)
            if (found := sha256_of(arrived)) != artifact.sha256:
                raise _not_as_pinned(artifact, found)
            break
        except FetchError:
            if attempt == ATTEMPTS or tally.stopped.is_set():
                raise
        tally.take_back(artifact)
        time.sleep(attempt * PAUSE_SECONDS)
    path.parent.mkdir(parents=True, exist_ok=True)
    arrived.replace(path)
    if not is_intact(path, artifact.sha256):
        raise _not_as_pinned(artifact, "a file that changed as soon as it was stored")
    tally.finish_file()


def _download(artifact: Artifact, folder: Path, tally: _Tally) -> Path:
    from jgo.maven import MavenContext, PythonResolver  # 0.1 s, needed only if there is something to fetch

    @contextmanager
    def count_bytes(_name: str, _size: int) -> Iterator[Callable[[int], None]]:
        yield lambda count: tally.add(artifact, count)

    # jgo writes directly to the final path in its repository, so it gets an empty repository.
    repository = os.environ.get("TRIBUTARY_MAVEN_REPOSITORY")
    context = MavenContext(
        resolver=PythonResolver(progress_callback=count_bytes),
        repo_cache=folder,
        remote_repos={"chosen": repository.rstrip("/")} if repository else None,
        timeout=TIMEOUT_SECONDS,
    )
    component = context.project(artifact.group, artifact.artifact).at_version(artifact.version)
    try:
        return Path(component.artifact(artifact.classifier, artifact.packaging).resolve())
    except (requests.RequestException, RuntimeError) as error:  # jgo: RuntimeError for any answer but 200
        raise _unreachable(artifact, error) from error


def _unreachable(artifact: Artifact, error: Exception) -> FetchError:
    return FetchError(
        f"A file that the project needs could not be fetched ({_root_cause(error)})",
        where=artifact.coordinate,
        remedy="Check the network and run the command again. Completed downloads are kept. "
        "Behind a mirror, set TRIBUTARY_MAVEN_REPOSITORY to its address.",
    )


def _not_as_pinned(artifact: Artifact, found: str) -> FetchError:
    return FetchError(
        f"The repository sent a file other than the pinned one, {ATTEMPTS} times",
        where=artifact.coordinate,
        found=f"SHA-256 {found}",
        expected=artifact.sha256,
        remedy="The download was discarded. A proxy may have sent its own page. If the artifact itself was "
        "replaced, do not use it.",
    )


def _root_cause(error: BaseException) -> str:
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return f"{type(error).__name__}: {error}"


class _Tally:
    """A count of the downloads of all threads."""

    def __init__(self, missing: Iterable[Artifact], progress: Callable[[FetchProgress], None]) -> None:
        self._bytes = dict.fromkeys(missing, 0)
        self._files = 0
        self._arrived = 0
        self._total = sum(artifact.size for artifact in self._bytes)
        self._progress = progress
        self._lock = threading.Lock()
        self.stopped = threading.Event()

    def add(self, artifact: Artifact, count: int) -> None:
        if self.stopped.is_set():
            raise FetchError("The fetch was stopped", where=artifact.coordinate)
        with self._lock:
            self._bytes[artifact] += count
            self._arrived += count
            self._report()

    def take_back(self, artifact: Artifact) -> None:
        with self._lock:
            self._arrived -= self._bytes[artifact]
            self._bytes[artifact] = 0
            self._report()

    def finish_file(self) -> None:
        with self._lock:
            self._files += 1
            self._report()

    def _report(self) -> None:
        self._progress(FetchProgress(self._files, len(self._bytes), self._arrived, self._total))

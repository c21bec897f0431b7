"""`fetch` gives exactly the pinned files, regardless of errors in the repository or the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.artifacts.conftest import Repository
from tributary.artifacts.fetch import FetchError, FetchProgress, cached_path, fetch
from tributary.artifacts.lock import Artifact


@pytest.fixture(autouse=True)
def no_pause_between_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tributary.artifacts.fetch.PAUSE_SECONDS", 0.0)


@pytest.fixture
def jars(repository: Repository) -> list[Artifact]:
    return [
        repository.publish(f"org.example:jar-{number}:1.0", bytes([number]) * 20_000) for number in range(12)
    ]


def test_a_fetched_file_is_the_pinned_one(repository: Repository) -> None:
    artifacts = {
        repository.publish("org.example:plain:1.0", b"plain"): b"plain",
        repository.publish("org.example:plain:1.0:all", b"all"): b"all",
        repository.publish("org.example:plain:1.0:plugin:tar.gz", b"archive"): b"archive",
        repository.publish("org.example:plain:2.0::pom", b"pom"): b"pom",
    }
    assert {artifact: path.read_bytes() for artifact, path in fetch(artifacts).items()} == artifacts


def test_progress_never_goes_back_and_ends_with_every_file_and_byte(jars: list[Artifact]) -> None:
    seen: list[FetchProgress] = []
    fetch(jars, seen.append)
    assert [now.bytes for now in seen] == sorted(now.bytes for now in seen)
    assert seen[-1] == FetchProgress(12, 12, 240_000, 240_000)


def test_a_cached_file_is_not_requested_again(repository: Repository, jars: list[Artifact]) -> None:
    fetch(jars)
    repository.requests.clear()
    seen: list[FetchProgress] = []
    fetch(jars, seen.append)
    assert (dict(repository.requests), seen) == ({}, [])


def test_a_deleted_and_a_damaged_file_of_the_cache_are_fetched_again(
    repository: Repository, jars: list[Artifact]
) -> None:
    paths = fetch(jars)
    paths[jars[0]].unlink()
    paths[jars[1]].write_bytes(b"damaged")
    repository.requests.clear()
    assert fetch(jars)[jars[1]].read_bytes() == bytes([1]) * 20_000
    assert {jar for jar in jars if repository.requests_for(jar)} == {jars[0], jars[1]}


def test_damage_that_keeps_size_and_modification_time_is_noticed(jars: list[Artifact]) -> None:
    path = fetch(jars)[jars[3]]
    before = path.stat()
    path.write_bytes(b"x" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert fetch(jars)[jars[3]].read_bytes() == bytes([3]) * 20_000


@pytest.mark.parametrize("answer", [b"something else", b"", 503, 404])
def test_a_wrong_file_is_rejected_and_requested_again(
    repository: Repository, jars: list[Artifact], answer: bytes | int
) -> None:
    repository.answer_next(jars[0], answer)
    assert fetch(jars)[jars[0]].read_bytes() == bytes([0]) * 20_000
    assert repository.requests_for(jars[0]) == 2


def test_a_file_that_never_matches_its_pin_is_named_and_not_kept(
    repository: Repository, jars: list[Artifact], cache: Path
) -> None:
    repository.answer_next(jars[5], *[b"a page of a proxy"] * 9)
    with pytest.raises(FetchError) as failure:
        fetch(jars)
    assert failure.value.where == "org.example:jar-5:1.0"
    assert failure.value.expected == jars[5].sha256
    assert not cached_path(jars[5]).exists()
    assert not (cache / "maven.partial").exists()


def test_without_a_repository_the_error_says_what_is_missing_and_what_to_do(
    jars: list[Artifact], monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(jars[1:])
    monkeypatch.setenv("TRIBUTARY_MAVEN_REPOSITORY", "http://127.0.0.1:9")
    assert fetch(jars[1:])
    with pytest.raises(FetchError) as failure:
        fetch(jars)
    assert failure.value.where == "org.example:jar-0:1.0"
    assert "network" in str(failure.value.remedies)


def test_files_that_arrived_before_a_failure_are_kept(repository: Repository, jars: list[Artifact]) -> None:
    del repository.files[f"/{jars[11].path}"]
    with pytest.raises(FetchError):
        fetch(jars[11:])
    fetch(jars[:11])
    with pytest.raises(FetchError):
        fetch(jars)
    assert {repository.requests_for(jar) for jar in jars[:11]} == {1}


def test_an_interrupted_fetch_leaves_nothing_half_done(jars: list[Artifact], cache: Path) -> None:
    def interrupt(_now: FetchProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(jars, interrupt)
    assert not (cache / "maven.partial").exists()
    whole = [jar for jar in jars if cached_path(jar).exists()]
    assert all(cached_path(jar).stat().st_size == jar.size for jar in whole)


def test_an_interrupt_stops_the_downloads_that_are_under_way(repository: Repository) -> None:
    large = [repository.publish(f"org.example:large-{number}:1.0", b"x" * 2_000_000) for number in range(2)]
    repository.seconds_per_chunk = 0.004
    interrupts = [KeyboardInterrupt()]

    def interrupt(_now: FetchProgress) -> None:
        if interrupts:
            raise interrupts.pop()

    with pytest.raises(KeyboardInterrupt):
        fetch(large, interrupt)
    assert [jar for jar in large if cached_path(jar).exists()] == []


def test_a_killed_process_leaves_no_half_written_file(jars: list[Artifact], cache: Path) -> None:
    leftover = cache / "maven.partial" / f"{jars[0].sha256}.1" / jars[0].path
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"half")
    assert fetch(jars)[jars[0]].read_bytes() == bytes([0]) * 20_000
    assert not (cache / "maven.partial").exists()


def test_two_processes_at_once_fetch_each_file_once(repository: Repository, jars: list[Artifact]) -> None:
    program = (
        "from tributary.artifacts.lock import Artifact; from tributary.artifacts.fetch import fetch\n"
        f"print(sum(path.stat().st_size for path in fetch({jars!r}).values()))"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    try:
        assert [process.communicate(timeout=60)[0] for process in processes] == ["240000\n", "240000\n"]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert {repository.requests_for(jar) for jar in jars} == {1}

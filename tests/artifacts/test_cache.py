"""Processes that share the cache never see an incomplete or damaged folder."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tributary.artifacts.cache import cache_root, cached_folder


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "/home/someone/.cache/tributary"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/tributary"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/someone/.cache/tributary"),
        ({"XDG_CACHE_HOME": "/xdg", "TRIBUTARY_CACHE": "/own"}, "/own"),
        ({"TRIBUTARY_CACHE": "~/own"}, "/home/someone/own"),
        ({"TRIBUTARY_CACHE": ""}, "/home/someone/.cache/tributary"),
    ],
)
def test_the_environment_sets_the_cache_folder(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TRIBUTARY_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/home/someone"} | environment).items():
        monkeypatch.setenv(name, value)
    assert cache_root() == Path(expected)


def test_a_folder_is_filled_once_for_any_number_of_callers(cache: Path) -> None:
    together, fills = Barrier(8), []

    def fill(folder: Path) -> None:
        fills.append(folder)
        (folder / "content").write_text("whole")

    def ask(_: int) -> str:
        together.wait()
        return (cached_folder("kind", "key", fill) / "content").read_text()

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(8))) == ["whole"] * 8
    assert len(fills) == 1
    assert cached_folder("kind", "key", fill) == cache / "kind" / "key"


def test_a_failed_fill_leaves_nothing_behind_and_the_next_one_starts_from_nothing(cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        cached_folder("kind", "key", fail)
    assert [path.name for path in (cache / "kind").iterdir()] == ["key.lock"]
    assert list(cached_folder("kind", "key", lambda folder: (folder / "whole").touch()).iterdir()) == [
        cache / "kind" / "key" / "whole"
    ]


def test_a_half_filled_folder_of_a_killed_process_is_not_used(cache: Path) -> None:
    child = os.fork()
    if child == 0:
        cached_folder("kind", "key", lambda folder: (folder / "half").touch() or os._exit(0))  # type: ignore[func-returns-value]
    os.waitpid(child, 0)
    assert (cache / "kind" / "key.partial" / "half").exists()
    assert list(cached_folder("kind", "key", lambda _folder: None).iterdir()) == []

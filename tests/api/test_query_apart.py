"""A query with limits takes neither memory nor time from the process that asks."""

from __future__ import annotations

import threading
import time

import psutil
import pytest

from tributary.api.lake_files import LocalFiles
from tributary.api.query_apart import query_apart
from tributary.api.sql import Limits, QueryError
from tributary.api.tables import UnknownTable
from tributary.contract.errors import TributaryError

FILES = LocalFiles("http://127.0.0.1:9", "key", "secret")
AMPLE = Limits(seconds=60, memory="500MB")


def ask(query: str, limits: Limits = AMPLE) -> list[dict[str, object]]:
    """Ask about a lake without tables."""
    rows: list[dict[str, object]] = query_apart(FILES, (), query, None, limits).to_pylist()
    return rows


def workers() -> set[int]:
    living = [one for one in psutil.Process().children() if one.status() != psutil.STATUS_ZOMBIE]
    return {one.pid for one in living if "query_worker" in " ".join(one.cmdline())}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT repeat('x', 2000000000)",
        "SELECT max(length(repeat('x', 1000000000))) FROM range(2048)",
        "SELECT len(list_transform(range(300_000_000), lambda n: n + random()))",
    ],
)
def test_a_huge_value_ends_the_query_and_the_next_one_is_answered(query: str) -> None:
    with pytest.raises(QueryError, match=r"Out of Memory|too much memory"):
        ask(query, Limits(seconds=60, memory="100MB"))
    assert ask("SELECT 7 AS n") == [{"n": 7}]


def test_a_value_that_duckdb_does_not_interrupt_ends_with_the_time_of_the_query() -> None:
    began = time.monotonic()
    with pytest.raises(QueryError, match=r"The query takes longer than 0\.5 seconds"):
        ask("SELECT sum(length(repeat('x', 2000000000))) FROM range(50)", Limits(0.5, "20GB"))
    assert time.monotonic() - began < 30


def test_one_process_answers_one_question_after_another_and_tells_their_mistakes() -> None:
    ask("SELECT 1")
    before = workers()
    assert before
    assert [ask(f"SELECT {n} AS n") for n in range(5)] == [[{"n": n}] for n in range(5)]
    for query in ("SELEKT 1", "SELECT city", "SELECT * FROM orders", "SELECT 1; SELECT 2"):
        with pytest.raises(TributaryError):
            ask(query)
    assert workers() == before


def test_two_threads_ask_at_the_same_time() -> None:
    found: list[list[dict[str, object]]] = []
    query = "SELECT count(*) AS n FROM range(50_000_000)"
    threads = [threading.Thread(target=lambda: found.append(ask(query))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[{"n": 50_000_000}]] * 2


def test_a_process_that_was_killed_is_replaced() -> None:
    ask("SELECT 1")
    for pid in workers():
        psutil.Process(pid).kill()
        psutil.wait_procs([psutil.Process(pid)], 10)
    assert ask("SELECT 2 AS n") == [{"n": 2}]


def test_an_error_is_told_as_if_this_process_had_asked() -> None:
    with pytest.raises(UnknownTable, match="no table 'orders'"):
        ask("SELECT * FROM orders")
    with pytest.raises(QueryError, match="The answer is too large"):
        ask("SELECT * FROM range(1_000_000_000)", Limits(seconds=60, memory="50MB"))

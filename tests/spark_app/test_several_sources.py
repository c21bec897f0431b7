"""A source that does not answer does not keep the others from being read, as long as the run follows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from spark_app.sources.event import EventSource
from spark_app.sources.several import SeveralSources
from tributary.contract.errors import TributaryError

REFUSED = TributaryError("The stream refuses the app", where="stream changes")


@dataclass
class FakeSource:
    """Raises the errors, one a call, and then has its topics."""

    found: frozenset[str]
    errors: list[Exception] = field(default_factory=list)

    def topics(self) -> frozenset[str]:
        if self.errors:
            raise self.errors.pop(0)
        return self.found


def sources(*, follows: bool, **errors: Sequence[Exception]) -> SeveralSources:
    """Return the sources `shop` and `items`, whose topics begin with their names."""
    made: Mapping[str, FakeSource] = {
        name: FakeSource(frozenset({f"{name}.a"}), list(errors.get(name, []))) for name in ("shop", "items")
    }
    return SeveralSources(
        cast("Mapping[str, EventSource]", made), lambda topic: topic.split(".")[0], follows=follows
    )


def test_a_run_that_follows_reads_the_other_sources_and_says_once_what_is_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = sources(follows=True, items=[REFUSED, REFUSED, OSError("away"), REFUSED])
    assert [found.topics() for _ in range(5)] == [{"shop.a"}] * 4 + [{"shop.a", "items.a"}]
    told = capsys.readouterr().err.splitlines()
    assert [line.partition(" now: ")[0] for line in told] == ["The source items cannot be read"] * 3
    assert "The stream refuses the app" in told[0]
    assert told[1].endswith("away")


def test_what_stays_wrong_is_said_once_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    moments = iter((0.0, 30.0, 61.0, 62.0))
    found = replace(sources(follows=True, items=[REFUSED] * 4), clock=lambda: next(moments))
    for _ in range(4):
        found.topics()
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_run_to_the_end_does_not_pass_over_a_source() -> None:
    with pytest.raises(TributaryError, match="refuses the app"):
        sources(follows=False, items=[REFUSED]).topics()


def test_if_no_source_answers_the_run_hears_why() -> None:
    with pytest.raises(OSError, match="no broker"):
        sources(follows=True, shop=[OSError("no broker")], items=[REFUSED]).topics()

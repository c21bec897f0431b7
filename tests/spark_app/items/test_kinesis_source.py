"""What a stream refuses is said, and asked for again."""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock

import pytest
from botocore.exceptions import ClientError

from spark_app.sources.bronze import BronzeSource
from spark_app.sources.kinesis import source as kinesis_source
from spark_app.sources.kinesis.lander import Lander
from spark_app.sources.kinesis.recently_landed import RecentlyLanded
from spark_app.sources.kinesis.source import KinesisSource
from spark_app.sources.kinesis.stream import Stream, StreamUnreadable, Throttled
from tests.spark_app.items.test_lander import FakeLanding, FakeStream
from tributary.contract.item_stream import ItemStream


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_SECONDS", "RETRY_SECONDS"):
        monkeypatch.setattr(kinesis_source, name, 0.0)


def _seconds() -> Callable[[], float]:
    """Return a clock that is a second later each time it is read."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    return clock


def _source(stream: FakeStream, landing: FakeLanding) -> KinesisSource:
    clock = _seconds()
    lander = Lander("shop-changes", stream, landing, clock=clock, now=lambda: stream.now_ms)
    return KinesisSource(lander, mock.Mock(spec=BronzeSource), RecentlyLanded(), follows=False, clock=clock)


def test_refused_requests_are_said_once_a_minute_and_lose_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream, landing = FakeStream(), FakeLanding()
    for number in range(5):
        stream.put("s0", b"a %d" % number)
    source = _source(stream, landing)
    stream.failures = [None, *[Throttled("slow down")] * 3]

    assert source.topics() == {"topic a"}
    landed = landing.landed()["topic a", "s0"]
    assert [data for _, _, data in landed] == [b"a %d" % number for number in range(5)]
    said = capsys.readouterr().err
    assert said.count("shop-changes refuses requests for s0") == 1, said


def test_a_run_that_does_not_follow_gives_up_if_everything_is_refused_for_two_minutes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream, landing = FakeStream(), FakeLanding()
    stream.put("s0", b"a 1")
    stream.failures = [None, *[Throttled("slow down")] * 1_000]
    source = _source(stream, landing)

    with pytest.raises(OSError, match="did not answer for two minutes"):
        source.topics()
    assert "refuses requests for s0" in capsys.readouterr().err
    assert not landing.landed()


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("KMSAccessDeniedException", "kms:Decrypt"),
        ("KMSDisabledException", "Enable the KMS key"),
        ("KMSInvalidStateException", "Enable the KMS key"),
        ("KMSNotFoundException", "Enable the KMS key"),
        ("AccessDeniedException", "role to read the stream"),
        ("ResourceNotFoundException", "correct its name"),
    ],
)
def test_what_only_a_person_can_mend_names_the_remedy(code: str, remedy: str) -> None:
    stream = Stream(ItemStream("shop-changes", "eu-central-1"))
    client = mock.Mock()
    client.get_records.side_effect = ClientError({"Error": {"Code": code}}, "GetRecords")
    stream.__dict__["_client"] = client
    with pytest.raises(StreamUnreadable, match=remedy):
        stream.read("an iterator")

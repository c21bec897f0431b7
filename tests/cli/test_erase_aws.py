"""Keys are erased from a deployed lake, and neither AWS nor a bucket keeps them."""

from __future__ import annotations

import io
import json
import os
import signal
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.emr.models import emr_backends
from moto.emrserverless.models import emrserverless_backends

from spark_app.reports import Blocked, Erased, Started, Stopped
from tests.aws_double import running_moto
from tests.cli.deployed import ACCOUNT, ITEMS, LAKE, NAMES, REGION, ROLE, SERVERLESS, Deployed, deploy
from tributary.cli import main
from tributary.cli.aws import erasing, job_run
from tributary.contract.aws_names import BucketKind
from tributary.contract.remedies import Ingest, remedies_as_json
from tributary.operations.aws.erasure_objects import ErasureObjects, KeysLeft, keys_on_aws
from tributary.operations.aws.jobs import JobRun, wait_for
from tributary.operations.aws.versions import Folder, VersionsLeft, check_removal, kept_until

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

SECRET = "zaphod-4711"
KEY = {"id": SECRET}
TABLE = "shop.public.people"
ERASED = Erased(TABLE, (KEY,), events=4, rows=1, quarantined=0, linked=('{"id": "other"}',))
DATA = ("bronze", "silver", "quarantine")
ERASABLE = LAKE + "[bronze]\nerase = true\n"
_INTERRUPTED = 130

pytestmark = pytest.mark.slow

Json = Mapping[str, Any]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server in place of AWS, because PyArrow reads the buckets, too."""
    with running_moto() as found:
        yield found


@pytest.fixture(autouse=True)
def aws(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lake.toml").write_text(ERASABLE)
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    _reset(address)


def _reset(address: str) -> None:
    urllib.request.urlopen(urllib.request.Request(f"{address}/moto-api/reset", method="POST")).close()


@pytest.fixture
def on_emr() -> Deployed:
    return _with_table(deploy())


def _with_table(deployed: Deployed) -> Deployed:
    for kind in DATA:
        deployed.s3.put_bucket_versioning(Bucket=_bucket(kind), VersioningConfiguration={"Status": "Enabled"})
    deployed.put_silver_table("people")
    _put_rows(deployed, "people", "somebody else")
    return deployed


def _bucket(kind: str) -> str:
    of_lake: Mapping[str, BucketKind] = {"bronze": "bronze", "silver": "silver", "quarantine": "quarantine"}
    return NAMES.bucket(of_lake[kind], ACCOUNT, REGION)


def _put_rows(deployed: Deployed, table: str, *ids: str) -> None:
    content = io.BytesIO()
    pq.write_table(pa.table({"id": list(ids)}), content)
    key = f"shop/public/{table}/rows.parquet"
    deployed.s3.put_object(Bucket=_bucket("silver"), Key=key, Body=content.getvalue())


def _steps(deployed: Deployed) -> Sequence[Any]:
    # Moto's server takes some services for those of another region.
    backends = emr_backends[ACCOUNT].values()
    (cluster,) = (one.clusters[deployed.place_id] for one in backends if deployed.place_id in one.clusters)
    steps: Sequence[Any] = cluster.steps
    return steps


def _arguments(deployed: Deployed) -> Sequence[str]:
    (step,) = _steps(deployed)
    arguments: Sequence[str] = step.args
    return arguments


def _option(arguments: Sequence[str], name: str) -> str:
    return arguments[list(arguments).index(name) + 1]


def _object(uri: str) -> tuple[str, str]:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key


def _lines(*reports: Started | Erased | Blocked | Stopped) -> str:
    found = [{"event": one.event, **asdict(one)} for one in reports]
    for one, report in zip(found, reports, strict=True):
        if isinstance(report, Blocked):
            one["remedies"] = remedies_as_json(report.remedies)
    return "".join(f"{json.dumps(one)}\n" for one in found)


ERASED_LINES = _lines(Started((TABLE,)), ERASED, Stopped({TABLE: "ok"}))


def job_ends(
    deployed: Deployed,
    monkeypatch: pytest.MonkeyPatch,
    report: str | None = ERASED_LINES,
    state: str = "COMPLETED",
) -> list[Any]:
    """Let the step read the keys, write the report and end. Return the list that gets the keys."""
    read: list[Any] = []

    def end() -> None:
        bucket, key = _object(_option(_arguments(deployed), "--keys"))
        read.append(json.loads(deployed.s3.get_object(Bucket=bucket, Key=key)["Body"].read()))
        if report is not None:
            bucket, key = _object(_option(_arguments(deployed), "--report"))
            deployed.s3.put_object(Bucket=bucket, Key=key, Body=report.encode())
        (step,) = _steps(deployed)
        step.state = state

    monkeypatch.setattr(job_run, "_pause", end)
    return read


def _places_of(s3: S3Client, text: str = SECRET) -> list[str]:
    """Return the versions of objects whose name or content has the text, in all buckets."""
    found = []
    for bucket in (one["Name"] for one in s3.list_buckets()["Buckets"]):
        listed = s3.list_object_versions(Bucket=bucket)
        for version in listed.get("Versions", ()):
            content = s3.get_object(Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])
            if text in version["Key"] or text.encode() in content["Body"].read():
                found.append(f"{bucket}/{version['Key']}")
    return found


def assert_nothing_is_left(deployed: Deployed) -> None:
    listed = deployed.s3.list_object_versions(Bucket=_bucket("quarantine"), Prefix="_erasures")
    assert not listed.get("Versions")
    assert not listed.get("DeleteMarkers")
    assert _places_of(deployed.s3) == []


def test_keys_are_erased_by_a_step_and_are_in_no_argument_and_no_object_afterwards(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read = job_ends(on_emr, monkeypatch)
    assert main.run(["erase", "people", SECRET, "--aws", "--json"]) == 0
    assert read == [[{"": SECRET}]]

    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert SECRET not in printed.err
    assert (found["table"], found["keys"], found["events"], found["rows"]) == (TABLE, [KEY], 4, 1)
    assert found["remains"] == {
        "events": 0, "files": [], "unsearched": [], "quarantined": 0, "searched": 1, "remembered": 0,
        "in_timeline": [],
    }  # fmt: skip
    assert found["in_versions_until"].endswith("00:00:00+00:00")
    assert found["purged_versions"] is None

    (step,) = _steps(on_emr)
    assert step.name == "tributary-shop-erase"
    assert _option(step.args, "s3://assets/main.py") == "erase"
    assert _option(step.args, "--tables") == TABLE
    assert "spark.eventLog.enabled=false" in step.args
    assert SECRET not in json.dumps(on_emr.emr.list_steps(ClusterId=on_emr.place_id), default=str)
    assert_nothing_is_left(on_emr)


def test_a_person_is_told_how_long_s3_keeps_the_removed_files(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job_ends(on_emr, monkeypatch)
    assert main.run(["erase", "people", SECRET, "--aws"]) == 0
    told = capsys.readouterr().out
    assert f"{TABLE}: erased 4 events in bronze, 1 rows and 0 events in quarantine." in told
    assert 'A row also had the key {"id": "other"}.' in told
    assert "noncurrent versions until" in told
    assert "--purge-versions" in told


def test_a_file_that_still_holds_the_key_is_named_and_nothing_is_purged(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _put_rows(on_emr, "people", SECRET)
    before = on_emr.s3.list_object_versions(Bucket=_bucket("silver"))["Versions"]
    job_ends(on_emr, monkeypatch)
    assert main.run(["erase", "people", SECRET, "--aws", "--purge-versions"]) == 1
    told = capsys.readouterr().out
    assert "shop/public/people/rows.parquet" in told
    assert "They were not removed, because a file still holds a key." in told
    assert "again with --purge-versions" not in told
    assert len(on_emr.s3.list_object_versions(Bucket=_bucket("silver"))["Versions"]) == len(before)


def test_purging_removes_noncurrent_versions_of_the_table_alone(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    events, metadata = "shop_bronze.db/events/data/k_topic=", "shop_bronze.db/events/metadata"
    own = [
        ("silver", "shop/public/people/old.bin"),
        ("quarantine", "shop/public/people/old.bin"),
        ("bronze", f"{events}shop.shop.public.people/old.bin"),
        ("bronze", f"{metadata}/old.bin"),
    ]
    others = [
        ("silver", "shop/public/people_2/old.bin"),
        ("quarantine", "shop/public/people_2/old.bin"),
        ("bronze", f"{events}shop.shop.public.people_2/old.bin"),
    ]
    for kind, key in (*own, *others):
        on_emr.s3.put_object(Bucket=_bucket(kind), Key=key, Body=SECRET.encode())
        on_emr.s3.delete_object(Bucket=_bucket(kind), Key=key)
    on_emr.s3.put_object(Bucket=_bucket("silver"), Key=own[0][1], Body=b"is current again")
    job_ends(on_emr, monkeypatch)

    assert main.run(["erase", "people", SECRET, "--aws", "--purge-versions", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # The four objects, and the delete marker of the one that is current again.
    assert (found["purged_versions"], found["in_versions_until"]) == (5, None)
    assert sorted(_places_of(on_emr.s3)) == sorted(f"{_bucket(kind)}/{key}" for kind, key in others)
    current = on_emr.s3.get_object(Bucket=_bucket("silver"), Key=own[0][1])["Body"].read()
    assert current == b"is current again"


def test_a_refusal_of_the_job_is_told_in_the_words_of_aws(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = f"A row is still in the source: found id={SECRET}."
    blocked = Blocked(TABLE, error, (Ingest(),), is_unchanged=True)
    job_ends(on_emr, monkeypatch, _lines(Started((TABLE,)), blocked, Stopped({TABLE: error})), "FAILED")
    assert main.run(["erase", "people", SECRET, "--aws"]) == 1
    told = capsys.readouterr().err
    assert error in told
    assert "nothing was changed" in told
    assert "tributary submit ingest" in told
    assert_nothing_is_left(on_emr)


def test_an_erasure_that_failed_on_its_way_may_have_changed_something(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job_ends(on_emr, monkeypatch, _lines(Started((TABLE,)), Blocked(TABLE, "S3 timed out")), "FAILED")
    assert main.run(["erase", "people", SECRET, "--aws"]) == 1
    told = capsys.readouterr().err
    assert "the erasure did not end; it can be repeated" in told
    assert "nothing was changed" not in told


def _fail(*_: object) -> NoReturn:
    raise OSError("the network is gone")


def _leave_keys(_: object) -> NoReturn:
    raise KeysLeft("The keys could not be removed")


@pytest.mark.parametrize(
    ("place", "name", "fails", "told"),
    [
        (erasing, "search", _fail, "OSError: the network is gone"),
        (erasing, "remove_noncurrent_versions", _fail, "OSError: the network is gone"),
        (ErasureObjects, "remove", _leave_keys, "The keys could not be removed"),
    ],
)
def test_a_failure_after_the_erasure_does_not_hide_its_report(
    place: Any,
    name: str,
    fails: Callable[..., NoReturn],
    told: str,
    on_emr: Deployed,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job_ends(on_emr, monkeypatch)
    monkeypatch.setattr(place, name, fails)
    assert main.run(["erase", "people", SECRET, "--aws", "--purge-versions"]) == 1
    printed = capsys.readouterr()
    assert f"{TABLE}: erased 4 events in bronze" in printed.out
    assert f"The keys were erased, but then this failed: {told}" in printed.err


def test_a_job_that_fails_after_its_report_has_erased_the_keys(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job_ends(on_emr, monkeypatch, state="FAILED")
    assert main.run(["erase", "people", SECRET, "--aws", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["events"] == 4
    assert "tributary-shop-erase is FAILED" in found["failures"][0]


def test_somebody_who_may_not_purge_is_told_before_the_job(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(s3: S3Client, folder: Folder) -> None:
        check_removal(cast("S3Client", _RefusingS3(s3)) if folder.bucket == _bucket("bronze") else s3, folder)

    monkeypatch.setattr(erasing, "check_removal", refuse)
    assert main.run(["erase", "people", SECRET, "--aws", "--purge-versions"]) == 1
    assert f"s3://{_bucket('bronze')}/" in capsys.readouterr().err
    assert not _steps(on_emr)
    assert_nothing_is_left(on_emr)


def test_a_job_that_dies_without_a_report_leaves_no_key(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job_ends(on_emr, monkeypatch, None, "FAILED")
    assert main.run(["erase", "people", SECRET, "--aws"]) == 1
    assert "tributary-shop-erase is FAILED" in capsys.readouterr().err
    assert_nothing_is_left(on_emr)


def test_a_job_that_reports_nothing_has_not_erased_anything(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job_ends(on_emr, monkeypatch, _lines(Started(()), Stopped({})))
    assert main.run(["erase", "people", SECRET, "--aws"]) == 1
    assert "of no table" in capsys.readouterr().err
    assert_nothing_is_left(on_emr)


def _press_ctrl_c() -> None:
    raise KeyboardInterrupt


def _hang_up() -> None:
    os.kill(os.getpid(), signal.SIGHUP)


def test_an_interrupted_command_leaves_no_key(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(job_run, "_pause", _press_ctrl_c)
    assert main.run(["erase", "people", SECRET, "--aws"]) == _INTERRUPTED
    assert "may keep running" in capsys.readouterr().err
    assert_nothing_is_left(on_emr)


def test_a_command_whose_terminal_is_closed_leaves_no_key(
    on_emr: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_run, "_pause", _hang_up)
    with main.orderly_end():
        assert main.run(["erase", "people", SECRET, "--aws"]) == 128 + signal.SIGHUP
    assert_nothing_is_left(on_emr)
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL


def test_nothing_is_erased_beside_another_job(on_emr: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["submit", "ingest"]) == 0
    assert main.run(["erase", "people", SECRET, "--aws"]) == 1
    assert "tributary-shop-ingest has not ended" in capsys.readouterr().err
    assert_nothing_is_left(on_emr)


@pytest.mark.parametrize(
    ("lake", "arguments", "told"),
    [
        (LAKE, ["people"], "[bronze].erase"),
        (ERASABLE, ["peopel"], "peopel"),
        (ERASABLE, ["public.*"], "one table at a time"),
    ],
)
def test_what_cannot_be_erased_is_refused_before_a_key_leaves_the_machine(
    lake: str,
    arguments: list[str],
    told: str,
    on_emr: Deployed,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    on_emr.put_silver_table("orders")
    (tmp_path / "lake.toml").write_text(lake)
    assert main.run(["erase", *arguments, SECRET, "--aws"]) == 1
    assert told in capsys.readouterr().err
    assert not _steps(on_emr)
    assert_nothing_is_left(on_emr)


_RECORDS = "shop_bronze.db/shop_records/data"
_OF_ITEMS = {
    "bronze": [
        f"{_RECORDS}/k_topic=shop.shop.dynamodb.orders/k_partition=0/rows.parquet",
        f"{_RECORDS}/k_topic=shop.shop/k_partition=0/rows.parquet",
    ],
    "silver": ["shop/dynamodb/orders/rows.parquet"],
    "quarantine": [
        "shop/dynamodb/orders/e0-p0-0-1/rows.parquet",
        "_deleted_keys/shop/dynamodb/orders/a/b.parquet",
    ],
}
"""The objects that can hold the key of an item."""


def _put_items(deployed: Deployed, key: str) -> None:
    """Put rows and records of an item with this key wherever a lake can have them."""
    record = json.dumps({"tableName": "orders", "dynamodb": {"Keys": {"id": {"S": key}}}}).encode()
    now = datetime.now(UTC)
    event = {
        "topic": "shop.shop.dynamodb.orders", "partition": 0, "offset": 0, "timestamp": now, "key": b"49",
        "value": record, "moved_to": None, "moved_from": None, "reason": "mismatch", "message": "",
        "quarantined_at": now,
    }  # fmt: skip
    record_key = json.dumps({"id": key}, separators=(",", ":"))
    rows: Mapping[str, Mapping[str, Any]] = {
        "shop_bronze.db": {"value": record},
        "shop": {"_key": record_key},
        "shop/dynamodb/orders/e0": event,
        "_deleted_keys": {"key": record_key},
    }
    for kind, objects in _OF_ITEMS.items():
        for name in objects:
            row = rows[max((begin for begin in rows if name.startswith(begin)), key=len)]
            content = io.BytesIO()
            pq.write_table(pa.Table.from_pylist([row]), content)
            deployed.s3.put_object(Bucket=_bucket(kind), Key=name, Body=content.getvalue())


@pytest.fixture
def items_on_emr(tmp_path: Path) -> Deployed:
    """A lake without Kafka, whose app writes bronze in any case."""
    (tmp_path / "lake.toml").write_text(ITEMS)
    deployed = deploy(has_kafka=False)
    for kind in DATA:
        deployed.s3.put_bucket_versioning(Bucket=_bucket(kind), VersioningConfiguration={"Status": "Enabled"})
    deployed.put("silver", "shop/dynamodb/orders/.hoodie/20260101000000000.deltacommit", "{}")
    return deployed


def _items_erased(until: datetime) -> str:
    erased = Erased("shop.dynamodb.orders", (KEY,), 4, 0, 0, in_stream_until=until.isoformat())
    return _lines(Started((erased.table,)), erased, Stopped({erased.table: "ok"}))


def test_an_item_is_erased_from_a_lake_without_kafka_and_its_stream_is_named(
    items_on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _put_items(items_on_emr, "somebody else")
    job_ends(items_on_emr, monkeypatch, _items_erased(datetime(2099, 1, 2, 3, 4, tzinfo=UTC)))
    assert main.run(["erase", "orders", SECRET, "--aws"]) == 0
    printed = capsys.readouterr()
    assert "shop.dynamodb.orders: erased 4 events in bronze" in printed.out
    assert "the quarantine and 1 files of silver: the key is in none." in printed.out
    assert "The stream shop-changes holds the events until 2099-01-02 03:04 UTC at the latest." in printed.out
    assert "Kafka" not in printed.out
    assert "--kafka" not in _arguments(items_on_emr)
    assert SECRET not in printed.err
    assert_nothing_is_left(items_on_emr)


def test_every_place_of_an_item_is_searched_and_purged(
    items_on_emr: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _put_items(items_on_emr, SECRET)
    job_ends(items_on_emr, monkeypatch, _items_erased(datetime(2026, 1, 2, tzinfo=UTC)))
    assert main.run(["erase", "orders", SECRET, "--aws"]) == 1
    told = capsys.readouterr().out
    assert (
        "Still there: 2 events in bronze, 1 in quarantine, 1 among the deleted keys, and in silver " in told
    )
    assert _OF_ITEMS["silver"][0] in told
    assert "The stream shop-changes holds no event of the keys any more." in told

    (step,) = _steps(items_on_emr)
    step.state = "COMPLETED"
    _put_items(items_on_emr, "somebody else")
    monkeypatch.setattr(erasing, "_report", lambda *_: (_erased_items(), None))
    monkeypatch.setattr(job_run, "_pause", _complete(items_on_emr))
    assert main.run(["erase", "orders", SECRET, "--aws", "--purge-versions", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["purged_versions"], found["in_kafka_until"]) == (5, None)
    assert found["in_stream_until"].startswith("2026-01-02")
    assert _places_of(items_on_emr.s3) == []


def _erased_items() -> Erased:
    return Erased("shop.dynamodb.orders", (KEY,), 0, 0, 0, in_stream_until="2026-01-02T00:00:00+00:00")


def _complete(deployed: Deployed) -> Callable[[], None]:
    def end() -> None:
        for step in _steps(deployed):
            step.state = "COMPLETED"

    return end


def test_only_buckets_on_aws_have_versions_to_purge() -> None:
    assert main.run(["erase", "people", SECRET, "--purge-versions"]) == 2


def test_keys_are_erased_by_a_job_run_of_emr_serverless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lake.toml").write_text(f"{SERVERLESS}[bronze]\nerase = true\n")
    deployed = _with_table(deploy("emr-serverless"))
    # Moto cannot list the job runs of an application that has none.
    deployed.emr_serverless.start_job_run(
        applicationId=deployed.place_id,
        executionRoleArn=ROLE,
        clientToken="somebody else's",
        name="somebody-else-s",
        jobDriver={"sparkSubmit": {"entryPoint": "s3://elsewhere/main.py"}},
    )
    sent: list[Json] = []

    def end(*of_wait: Any) -> JobRun:
        backends = emrserverless_backends[ACCOUNT].values()
        (runs,) = (one.job_runs[deployed.place_id] for one in backends if deployed.place_id in one.job_runs)
        run = runs[1]
        assert run.job_driver is not None
        sent.append(run.job_driver["sparkSubmit"])
        bucket, key = _object(_option(sent[0]["entryPointArguments"], "--report"))
        deployed.s3.put_object(Bucket=bucket, Key=key, Body=ERASED_LINES.encode())
        # At moto, the run is over when it is read for the first time.
        return wait_for(*of_wait)

    monkeypatch.setattr(job_run, "wait_for", end)
    assert main.run(["erase", "people", SECRET, "--aws"]) == 0
    assert "spark.eventLog.enabled=false" in sent[0]["sparkSubmitParameters"]
    assert SECRET not in json.dumps(sent)
    assert_nothing_is_left(deployed)


class _RefusingS3:
    """An S3 that removes no versions. `written` has the contents of all objects."""

    def __init__(self, s3: S3Client, refused: int = 1) -> None:
        self._s3 = s3
        self._refused = refused
        self.written: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._s3, name)

    def put_object(self, **request: Any) -> Any:
        self.written.append(request["Body"])
        return self._s3.put_object(**request)

    def delete_objects(self, **request: Any) -> Any:
        self._refused -= 1
        if self._refused == 0:
            key = request["Delete"]["Objects"][0]["Key"]
            return {"Errors": [{"Key": key, "Code": "AccessDenied", "Message": "no"}]}
        return self._s3.delete_objects(**request)


def test_no_key_leaves_the_machine_of_somebody_who_may_not_remove_it(on_emr: Deployed) -> None:
    s3: Any = _RefusingS3(on_emr.s3)
    with (
        pytest.raises(VersionsLeft, match="s3:DeleteObjectVersion"),
        keys_on_aws(s3, _bucket("quarantine"), [KEY]),
    ):
        pytest.fail("the keys were written")
    assert s3.written == [b""]


def test_keys_that_could_not_be_removed_are_named_with_what_removes_them(on_emr: Deployed) -> None:
    s3: Any = _RefusingS3(on_emr.s3, refused=2)
    with (
        pytest.raises(KeysLeft, match="Remove all versions") as error,
        keys_on_aws(s3, f"{_bucket('quarantine')}/prefix", [KEY]) as objects,
    ):
        assert objects.folder.startswith("prefix/_erasures/")
    assert objects.folder in str(error.value)
    assert "2 to 4 days later" in str(error.value)
    assert SECRET not in str(error.value)


def test_s3_keeps_versions_until_a_midnight_after_seven_days() -> None:
    removed = datetime(2026, 11, 28, 23, 59, tzinfo=UTC)
    assert kept_until(removed) == datetime(2026, 12, 6, tzinfo=UTC)
    assert kept_until(removed + timedelta(minutes=1)) == datetime(2026, 12, 7, tzinfo=UTC)

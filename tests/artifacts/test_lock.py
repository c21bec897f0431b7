"""A lock file pins every file, and a mistake in one is reported with its entry."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import connectors
import spark_app
from tests.aws.yarn import hadoop
from tributary import local
from tributary.artifacts import java_compiler, java_formatter
from tributary.artifacts.lock import (
    Artifact,
    ArtifactSet,
    Lock,
    LockError,
    parse_coordinate,
    read_lock,
    write_lock,
)

LOCKS = [
    Path(connectors.__file__).with_name("plugins.lock.json"),
    Path(connectors.__file__).with_name("connect-classes.lock.json"),
    java_compiler.LOCK,
    java_formatter.LOCK,
    Path(local.__file__).with_name("services.lock.json"),
    Path(spark_app.__file__).with_name("jars.lock.json"),
    Path(spark_app.__file__).with_name("emr-jars.lock.json"),
    hadoop.LOCK,
]
PART = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,8}", fullmatch=True)
ARTIFACTS = st.builds(
    Artifact,
    group=PART,
    artifact=PART,
    version=PART,
    classifier=st.just("") | PART,
    packaging=st.sampled_from(["jar", "tar.gz", "pom"]),
    sha256=st.binary(min_size=32, max_size=32).map(bytes.hex),
    size=st.integers(1, 10**9),
)


@given(ARTIFACTS)
def test_a_coordinate_identifies_an_artifact(artifact: Artifact) -> None:
    assert parse_coordinate(artifact.coordinate, sha256=artifact.sha256, size=artifact.size) == artifact


@pytest.mark.parametrize("text", ["", "a:b", "a::c", "a:b:c:d:e:f", "a:b:c d", "../a:b/../c:1", "a:b:c:d:"])
def test_a_text_that_is_not_a_coordinate_is_refused(text: str) -> None:
    with pytest.raises(LockError):
        parse_coordinate(text)


@given(st.lists(ARTIFACTS, unique_by=lambda artifact: artifact.coordinate))
def test_a_lock_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, artifacts: list[Artifact]
) -> None:
    path = tmp_path_factory.mktemp("lock") / "lock.json"
    part = ArtifactSet("part", tuple(sorted(artifacts)), resolve=("a:b:1",), platform="linux-amd64")
    write_lock(Lock(path, {"part": part}))
    read = read_lock(path)
    assert {file.coordinate: file for file in read["part"]} == {file.coordinate: file for file in artifacts}
    assert (read.sets["part"].resolve, read.sets["part"].platform) == (("a:b:1",), "linux-amd64")


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_the_project_s_locks_have_the_canonical_form_and_pin_every_root(path: Path, tmp_path: Path) -> None:
    lock = read_lock(path)
    write_lock(Lock(tmp_path / "again.json", lock.sets))
    assert (tmp_path / "again.json").read_text() == path.read_text()
    for part in lock.sets.values():
        assert {*part.resolve, *part.add} <= {file.coordinate for file in part.files}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_no_part_uses_two_versions_of_one_library(path: Path) -> None:
    for part in read_lock(path).sets.values():
        libraries = Counter((file.group, file.artifact, file.classifier) for file in part.files)
        assert [library for library, count in libraries.items() if count > 1] == []


def test_a_machine_gets_the_files_of_its_own_platform_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    files = {name: Artifact("g", name, "1", sha256="0" * 64, size=1) for name in ("all", "mac", "linux")}
    lock = Lock(
        tmp_path / "lock.json",
        {
            "all": ArtifactSet("all", (files["all"],)),
            "mac": ArtifactSet("mac", (files["mac"],), platform="darwin-arm64"),
            "linux": ArtifactSet("linux", (files["linux"],), platform="linux-arm64"),
        },
    )
    assert list(lock.on_this_machine()) == [files["all"], files["mac"]]


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ("[]", "list"),
        ("{", "not JSON"),
        ({"kafka": []}, "[kafka]"),
        ({"kafka": {"jars": {}}}, "jars"),
        ({"kafka": {"files": {"a:b": {"sha256": "0" * 64, "size": 1}}}}, "a:b"),
        ({"kafka": {"files": {"a:b:c": {"sha256": "0" * 63, "size": 1}}}}, "a:b:c"),
        ({"kafka": {"files": {"a:b:c": {"sha256": "0" * 64, "size": 0}}}}, "a:b:c"),
        ({"kafka": {"files": {"a:b:c": "0" * 64}}}, "a:b:c"),
    ],
)
def test_an_error_names_the_file_and_the_entry_that_is_wrong(
    document: object, named: str, tmp_path: Path
) -> None:
    path = tmp_path / "lock.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(LockError) as failure:
        read_lock(path)
    assert named in str(failure.value)


def test_a_missing_lock_and_a_missing_set_are_named(tmp_path: Path) -> None:
    with pytest.raises(LockError, match="is missing"):
        read_lock(tmp_path / "lock.json")
    with pytest.raises(LockError, match="kafkaa"):
        read_lock(LOCKS[3])["kafkaa"]

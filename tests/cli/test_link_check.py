"""A folder of a release's jars is checked without running anything, and what it lacks is named."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pyspark
import pytest

from tributary.cli import main
from tributary.local.spark_jars import spark_jars

IDENTIFIER = "org/apache/hudi/index/bucket/BucketIdentifier.class"


@pytest.mark.slow
def test_a_release_is_checked_by_its_jars_and_a_removed_class_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_spark = (Path(pyspark.__file__).parent / "jars").glob("*.jar")
    (tmp_path / "spark").mkdir()
    for jar in of_spark:
        (tmp_path / "spark" / jar.name).symlink_to(jar)
    for jar in spark_jars()[:-1]:
        (tmp_path / jar.name).symlink_to(jar)

    assert main.run(["link-check", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["checked"] > 1_000
    assert found["missing"] == []

    (bundle,) = tmp_path.glob("hudi-spark*.jar")
    original = bundle.resolve()
    bundle.unlink()
    with zipfile.ZipFile(original) as before, zipfile.ZipFile(bundle, "w") as after:
        for name in before.namelist():
            if name.startswith("org/apache/hudi") and name != IDENTIFIER:
                after.writestr(name, before.read(name))
    assert main.run(["link-check", str(tmp_path)]) == 1
    assert f"missing: {IDENTIFIER.removesuffix('.class').replace('/', '.')}\n" in capsys.readouterr().out


def test_a_folder_without_jars_is_refused(tmp_path: Path) -> None:
    assert main.run(["link-check", str(tmp_path)]) == 2


@pytest.mark.parametrize("damage", ["half a copy", "a link to nothing"])
def test_a_jar_that_cannot_be_read_is_told_with_its_name(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jar = tmp_path / "hudi-spark-bundle.jar"
    if damage == "half a copy":
        whole = tmp_path / "whole.zip"
        with zipfile.ZipFile(whole, "w") as archive:
            archive.writestr("org/example/Class.class", b"bytes" * 1000)
        jar.write_bytes(whole.read_bytes()[:1000])
    else:
        jar.symlink_to("hudi-spark3-bundle_2.12-1.0.2.jar")
    assert main.run(["link-check", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert f"{jar}: the jar cannot be read: found" in told.replace("\n", "")
    assert "unexpected error" not in told

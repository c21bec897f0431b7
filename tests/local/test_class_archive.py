"""Spark loads its classes from an archive if there is one, and also starts without one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

from tributary.artifacts.java import find_java
from tributary.local.class_archive import class_archive_options, make_class_archive
from tributary.local.spark_jars import spark_jars


@pytest.fixture
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that cannot run, and an empty cache."""
    monkeypatch.setenv("TRIBUTARY_CACHE", str(tmp_path / "cache"))
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\necho started >>$(dirname $0)/starts\nexit 1\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text('JAVA_VERSION="17.0.1"\n')
    return home


def test_without_an_archive_there_are_no_options(java_home: Path) -> None:
    assert class_archive_options(java_home, ()) == ()


def test_a_java_that_cannot_make_an_archive_is_tried_once_and_its_output_is_kept(java_home: Path) -> None:
    starts = java_home / "bin" / "starts"
    assert not make_class_archive(java_home, ())
    first = starts.read_text()
    assert not make_class_archive(java_home, ())
    assert starts.read_text() == first
    assert class_archive_options(java_home, ()) == ()
    assert len(list(java_home.parent.glob("cache/class-archives/*/training.log"))) == 1


def test_an_archive_belongs_to_one_java_and_one_set_of_jars(java_home: Path, tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"classes")
    make_class_archive(java_home, (jar,))
    (folder,) = [path for path in java_home.parent.glob("cache/class-archives/*") if path.is_dir()]
    (folder / "spark.jsa").write_bytes(b"archive")
    assert any(str(folder) in option for option in class_archive_options(java_home, (jar,)))
    assert class_archive_options(java_home, ()) == ()
    (java_home / "release").write_text('JAVA_VERSION="17.0.2"\n')
    assert class_archive_options(java_home, (jar,)) == ()
    (java_home / "release").write_text('JAVA_VERSION="17.0.1"\n')
    jar.write_bytes(b"other classes")
    assert class_archive_options(java_home, (jar,)) == ()


@pytest.mark.slow
def test_spark_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    home, jars = find_java().home, spark_jars()
    if not make_class_archive(home, jars):
        pytest.skip("this Java cannot make an archive of classes")
    spark_home, log = Path(pyspark.__file__).parent, tmp_path / "classes.log"
    options = (*class_archive_options(home, jars), f"-Xlog:class+load=info:file={log}")
    result = subprocess.run(
        [
            str(spark_home / "bin" / "spark-submit"),
            *("--driver-class-path", os.pathsep.join(map(str, jars))),
            *("--driver-java-options", " ".join(options)),
            "--version",
        ],
        env={
            "PATH": os.defpath,
            "JAVA_HOME": str(home),
            "SPARK_HOME": str(spark_home),
            "SPARK_CONF_DIR": str(tmp_path / "none"),
        },
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    (loaded,) = [
        line for line in log.read_text().splitlines() if " org.apache.spark.deploy.SparkSubmit " in line
    ]
    assert "shared objects file (top)" in loaded

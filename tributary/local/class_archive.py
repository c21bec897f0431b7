"""An archive of classes that shortens the start of Spark's JVM (AppCDS).

Another JVM has loaded and verified these classes before. Spark's JVM maps the archive instead of reading the
classes from 250 jars. `python -m tributary.local.class_archive` makes it in half a minute, once for each Java
and set of jars. Without it everything works, but starts later.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark
from rich.console import Console

import spark_app
from connectors.worker import as_properties
from tributary.artifacts.cache import cache_root, cached_folder
from tributary.artifacts.java import find_java
from tributary.artifacts.progress import shown_on
from tributary.local import class_training
from tributary.local.s3 import s3a_options
from tributary.local.spark_jars import spark_jars

KIND = "class-archives"
_ARCHIVE, _LOG = "spark.jsa", "training.log"
_TRAINING = Path(class_training.__file__).with_name("main.py")
_TRAINING_SECONDS = 300


def class_archive_options(java_home: Path, jars: Sequence[Path]) -> tuple[str, ...]:
    """Return options for a JVM of this Java with these jars before Spark's, or none without an archive.

    The JVM itself checks that the archive fits its class path, and otherwise ignores it. A folder with files
    in the class path rules an archive out, so SPARK_CONF_DIR must name an empty or a missing folder.
    """
    archive = _folder(_key(java_home, jars)) / _ARCHIVE
    if not archive.is_file():
        return ()
    # Otherwise the JVM would explain on standard output why it ignores the archive.
    return (f'"-XX:SharedArchiveFile={archive}"', "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def make_class_archive(java_home: Path, jars: Sequence[Path]) -> bool:
    """Create the archive if it is missing. Return whether it exists now.

    A failed attempt is remembered and not repeated.
    """
    key = _key(java_home, jars)
    folder = cached_folder(KIND, key, lambda empty: _train(java_home, jars, empty))
    return (folder / _ARCHIVE).is_file()


def prepare_class_archive(console: Console, java_home: Path, jars: Sequence[Path]) -> None:
    """Create the archive if it is missing, and print that, or that it failed."""
    if class_archive_options(java_home, jars):
        return
    console.print("preparing Spark's start (once; about half a minute)")
    if not make_class_archive(java_home, jars):
        log = _folder(_key(java_home, jars)) / _LOG
        console.print(f"the preparation failed, so Spark will start more slowly; see {log}")


def _folder(key: str) -> Path:
    return cache_root() / KIND / key


def _key(java_home: Path, jars: Sequence[Path]) -> str:
    """Return a digest of everything that the JVM compares and that the archive depends on."""
    release = java_home / "release"
    facts = [
        str(java_home.resolve()),
        release.read_text() if release.is_file() else "",
        pyspark.__version__,
        _TRAINING.read_text(),
        *[_fact_of(jar) for jar in (*jars, _spark_home() / "jars")],
    ]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]


def _fact_of(path: Path) -> str:
    status = path.stat()
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def _train(java_home: Path, jars: Sequence[Path], folder: Path) -> None:
    """Write the archive to the folder, or at least a log that says why it failed."""
    with TemporaryDirectory(prefix="tributary-classes-") as scratch, (folder / _LOG).open("w") as log:
        properties = Path(scratch) / "spark.properties"
        properties.write_text(as_properties(_properties(jars, folder / _ARCHIVE, scratch)))
        command = [str(_spark_home() / "bin" / "spark-submit"), "--properties-file", str(properties)]
        try:
            status = subprocess.run(
                [*command, str(_TRAINING), scratch],
                env=_environment(java_home, scratch),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=_TRAINING_SECONDS,
            ).returncode
        except subprocess.TimeoutExpired:
            status = -1
        if status != 0:
            (folder / _ARCHIVE).unlink(missing_ok=True)


def _properties(jars: Sequence[Path], archive: Path, scratch: str) -> Mapping[str, str]:
    s3a = "spark.hadoop.fs.s3a"
    # There is no server, but an attempt to connect loads the same classes.
    to_no_server = s3a_options("http://127.0.0.1:1")
    return {
        "spark.master": "local[*]",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        "spark.driver.extraJavaOptions": f'"-XX:ArchiveClassesAtExit={archive}" -XX:TieredStopAtLevel=1 '
        "-XX:+UseParallelGC -Xlog:cds=off -Xlog:cds+dynamic=off",
        "spark.ui.enabled": "false",
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": Path(scratch, "warehouse").as_uri(),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        **{f"{s3a}.{name}": value for name, value in to_no_server.items()},
        f"{s3a}.attempts.maximum": "1",
        f"{s3a}.retry.limit": "0",
        f"{s3a}.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
    }


def _environment(java_home: Path, scratch: str) -> Mapping[str, str]:
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
        "HOME": scratch,
        "TZ": "UTC",
        "JAVA_HOME": str(java_home),
        "SPARK_HOME": str(_spark_home()),
        "SPARK_CONF_DIR": str(Path(scratch, "none")),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(spark_app.__file__).parent.parent),
    }


def _spark_home() -> Path:
    return Path(pyspark.__file__).parent


if __name__ == "__main__":
    stderr = Console(stderr=True)
    with shown_on(stderr) as progress:
        found_jars = spark_jars(progress)
    prepare_class_archive(stderr, find_java().home, found_jars)

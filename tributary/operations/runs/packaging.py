"""Build the Spark app's package: its modules, the contract, and the wheels of both."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import spark_app
from tributary import contract
from tributary.artifacts.cache import cache_root, cached_folder, sha256_of
from tributary.artifacts.fetch import fetch
from tributary.artifacts.lock import platform_name, read_lock
from tributary.artifacts.pip import Target, fetch_wheels
from tributary.artifacts.zips import unpack_zip, write_zip
from tributary.local.spark_jars import classes_jar

ENTRY_POINT = "main.py"
"""The script for spark-submit, at the root of the package. The root is on the PYTHONPATH."""
_AWS_SERVICES = frozenset({"dynamodb", "glue", "kinesis", "logs", "s3", "sso", "sso-oidc", "sts"})
"""The AWS services that the app calls or gets credentials from. All services take 19 of botocore's 22 MB."""
_SPARK_APP = Path(spark_app.__file__).parent
_EMR_JARS = _SPARK_APP / "emr-jars.lock.json"
_CONTRACT = Path(contract.__file__).parent
_TRIBUTARY = _CONTRACT.parent


def build_package(out: Path | None = None, platform: str | None = None) -> Path:
    """Build the zip of the Spark app for Python 3.11 on `platform`, and return its path in the folder `out`.

    By default it is for this machine, and in the cache. `artifacts.pip.PLATFORMS` names the platforms. The
    zip's name holds the first digits of its own SHA-256. The same sources give the same bytes on any machine.
    Raises PipError if the wheels are not cached and cannot be fetched.
    """
    platform = platform or platform_name()
    folder = out or cache_root() / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    contents = dict(_modules()) | dict(_wheels(platform))
    with TemporaryDirectory(prefix=".package-", dir=folder) as scratch:
        unnamed = Path(scratch) / "package"
        write_zip(unnamed, contents)
        return unnamed.rename(folder / f"tributary-spark-app-{platform}-{sha256_of(unnamed)[:12]}.zip")


def build_jars(out: Path) -> tuple[Path, ...]:
    """Return the jars that a run on EMR needs in addition to EMR's own, in the folder `spark-jars` of `out`.

    Raises FetchError if they are not cached and cannot be fetched, and JavaError or NotCompiled like
    `classes_jar`.
    """
    folder = out / "spark-jars"
    folder.mkdir(parents=True, exist_ok=True)
    jars = (*fetch_emr_jars(), classes_jar())
    return tuple(Path(shutil.copyfile(jar, folder / jar.name)) for jar in jars)


def fetch_emr_jars() -> tuple[Path, ...]:
    """Return the third-party jars that a job brings to EMR. Raises FetchError."""
    return tuple(fetch(read_lock(_EMR_JARS)["emr"]).values())


def unpack_package(package: Path) -> Path:
    """Return the cached folder with the content of a package. This folder belongs on the PYTHONPATH."""
    return cached_folder(
        "unpacked-packages", sha256_of(package)[:16], lambda folder: unpack_zip(package, folder)
    )


def _modules() -> Iterator[tuple[str, bytes]]:
    yield ENTRY_POINT, (_SPARK_APP / ENTRY_POINT).read_bytes()
    for root, package in ((_SPARK_APP.parent, _SPARK_APP), (_TRIBUTARY.parent, _CONTRACT)):
        for module in package.rglob("*.py"):
            yield module.relative_to(root).as_posix(), module.read_bytes()
    yield "tributary/__init__.py", (_TRIBUTARY / "__init__.py").read_bytes()


def _wheels(platform: str) -> Iterator[tuple[str, bytes]]:
    for path in fetch_wheels(_SPARK_APP / "requirements.txt", Target(platform)):
        with ZipFile(path) as wheel:
            for entry in wheel.infolist():
                if not entry.is_dir() and _is_called(entry.filename):
                    yield entry.filename, wheel.read(entry)


def _is_called(filename: str) -> bool:
    """Tell whether to keep a wheel's file. Descriptions of AWS services that nothing calls are dropped."""
    folders = Path(filename).parts[:-1]
    return folders[:2] != ("botocore", "data") or not folders[2:] or folders[2] in _AWS_SERVICES

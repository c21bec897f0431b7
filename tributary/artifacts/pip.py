"""Fetch packages from PyPI to the cache, for this machine or another platform. pip checks the hashes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tributary.artifacts.cache import cached_folder
from tributary.artifacts.lock import platform_name
from tributary.contract.errors import TributaryError

# https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/
# Spark's and Lambda's machines on AWS run glibc 2.34; macOS 11 is the first for arm64.
_TAGS = {
    "linux-amd64": ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64"),
    "linux-arm64": ("manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_28_aarch64"),
    "darwin-amd64": ("macosx_10_12_x86_64", "macosx_11_0_x86_64"),
    "darwin-arm64": ("macosx_11_0_arm64",),
}
PLATFORMS = tuple(_TAGS)
"""The platforms whose wheels can be fetched, as `tributary.artifacts.lock.platform_name` names them."""


class PipError(TributaryError):
    """pip could not get the packages that a requirements file pins."""


@dataclass(frozen=True)
class Target:
    """Where wheels run: a platform, and a version of CPython such as "3.11"."""

    platform: str
    python: str = "3.11"


LAMBDA = Target("linux-arm64", "3.14")
"""What the functions on AWS run on."""


def fetch_wheels(requirements: Path, target: Target) -> tuple[Path, ...]:
    """Return the wheels that a requirements file pins, for the target, sorted by name.

    Cached wheels need no network. Raises PipError if the platform is unknown or pip fails.
    """
    if target.platform not in _TAGS:
        expected = f"one of {', '.join(PLATFORMS)}"
        raise PipError("The platform is unknown", found=target.platform, expected=expected)
    tags = [f"--platform={tag}" for tag in _TAGS[target.platform]]
    abis = [f"--abi={abi}" for abi in (f"cp{target.python.replace('.', '')}", "abi3", "none")]

    def fill(folder: Path) -> None:
        python = [f"--python-version={target.python}", "--implementation=cp", *abis]
        _run_pip("download", requirements, [*tags, *python, f"--dest={folder}"])

    name = f"{target.platform}-{target.python}-{_digest(requirements)}"
    folder = cached_folder("wheels", name, fill)
    return tuple(sorted(folder.glob("*.whl")))


def install_packages(requirements: Path, kind: str, built: Sequence[str] = ()) -> Path:
    """Install the packages that a requirements file pins, for this machine. Return their cached folder.

    built  the packages that have no wheel, so that pip builds them from their source
    """

    def fill(folder: Path) -> None:
        from_source = [f"--no-binary={name}" for name in built]
        _run_pip("install", requirements, [f"--target={folder}", "--no-compile", *from_source])

    return cached_folder(kind, f"{platform_name()}-{_digest(requirements)}", fill)


def _digest(requirements: Path) -> str:
    return hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]


def _run_pip(command: str, requirements: Path, options: Sequence[str]) -> None:
    checked = ["--require-hashes", "--no-deps", "--only-binary=:all:", f"--requirement={requirements}"]
    quietly = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries=2"]
    pip = subprocess.run(
        [sys.executable, "-m", "pip", command, *quietly, *checked, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    if pip.returncode:
        complaint = [line for line in pip.stderr.splitlines() if line.startswith("ERROR")] or [pip.stderr]
        raise PipError(
            f"pip could not {command} the pinned packages ({complaint[-1].strip()})",
            where=str(requirements),
            remedy="Check the network. If you use your own package index, check pip's settings too.",
        )

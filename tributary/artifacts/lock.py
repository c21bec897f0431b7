"""Lock files: the Maven artifacts that the project needs, with their sizes and SHA-256.

A lock file is JSON with one named set of artifacts for each part of the pipeline:

    {"kafka": {"resolve": ["org.apache.kafka:kafka_2.13:3.7.1", …],
               "files": {"org.apache.kafka:kafka_2.13:3.7.1": {"sha256": "…", "size": 5443210}, …}}}

People edit `resolve` (artifacts with their dependencies), `add` (artifacts without them) and `platform` (the
only platform that needs the set). `tributary.artifacts.renew` computes `files`, the artifacts to fetch.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from tributary.contract.errors import TributaryError

_COORDINATE = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+)(?::([\w.-]*)(?::([\w.-]+))?)?", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class LockError(TributaryError):
    """A lock file is wrong."""


@dataclass(frozen=True, order=True)
class Artifact:
    """A file of a Maven repository, with its expected SHA-256 and size in bytes."""

    group: str
    artifact: str
    version: str
    classifier: str = ""
    packaging: str = "jar"
    sha256: str = ""
    size: int = 0

    @property
    def coordinate(self) -> str:
        """`group:artifact:version`, with `:classifier` and `:packaging` unless they are the defaults."""
        parts = [self.group, self.artifact, self.version]
        if self.classifier or self.packaging != "jar":
            parts.append(self.classifier)
        if self.packaging != "jar":
            parts.append(self.packaging)
        return ":".join(parts)

    @property
    def filename(self) -> str:
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classifier}.{self.packaging}"

    @property
    def path(self) -> PurePosixPath:
        """Its path in a repository with Maven's layout."""
        return PurePosixPath(*self.group.split("."), self.artifact, self.version, self.filename)


@dataclass(frozen=True)
class ArtifactSet:
    """The artifacts of one part of the pipeline, and the entries they were computed from."""

    name: str
    files: tuple[Artifact, ...]
    resolve: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    platform: str | None = None

    def fits(self, name: str) -> bool:
        """Tell whether a machine of the platform `name` needs the set."""
        return self.platform in (None, name)


@dataclass(frozen=True)
class Lock:
    """One lock file."""

    path: Path
    sets: Mapping[str, ArtifactSet] = field(default_factory=dict)

    def __getitem__(self, name: str) -> tuple[Artifact, ...]:
        """Return the artifacts of the set `name`. Raise LockError if the set does not exist."""
        if name not in self.sets:
            raise LockError(
                f"The lock file has no set {name!r}",
                where=str(self.path),
                expected="one of " + ", ".join(sorted(self.sets)),
            )
        return self.sets[name].files

    def on_this_machine(self) -> Iterator[Artifact]:
        """Yield the artifacts of every set that this machine's platform needs."""
        for artifact_set in self.sets.values():
            if artifact_set.fits(platform_name()):
                yield from artifact_set.files


def platform_name() -> str:
    """Return this machine's platform: linux-amd64, linux-arm64, darwin-amd64, darwin-arm64, …"""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}-{_MACHINES.get(machine, machine)}"


def parse_coordinate(text: str, *, sha256: str = "", size: int = 0) -> Artifact:
    """Parse `group:artifact:version[:classifier[:packaging]]`. Raise LockError."""
    named = _COORDINATE.fullmatch(text)
    if named is None:
        raise LockError(
            "This is not a Maven coordinate",
            found=repr(text),
            expected="group:artifact:version[:classifier[:packaging]]",
        )
    group, artifact, version, classifier, packaging = named.groups()
    return Artifact(group, artifact, version, classifier or "", packaging or "jar", sha256, size)


def read_lock(path: Path) -> Lock:
    """Read the lock file at `path`. Raise LockError with the name of the wrong entry."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise LockError(
            "The lock file is missing",
            where=str(path),
            remedy="Install Tributary again. In a clone, restore the file with git.",
        ) from error
    except ValueError as error:
        raise LockError(f"The lock file is not JSON ({error})", where=str(path)) from error
    if not isinstance(document, dict):
        raise LockError("The lock file is not a JSON object", where=str(path), found=type(document).__name__)
    return Lock(path, {name: _read_set(path, name, entry) for name, entry in document.items()})


def write_lock(lock: Lock) -> None:
    """Write the lock file. The same lock always gives the same bytes."""
    document = {name: _set_as_json(artifact_set) for name, artifact_set in lock.sets.items()}
    lock.path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _read_set(path: Path, name: str, entry: object) -> ArtifactSet:
    where = f"{path} [{name}]"
    if not isinstance(entry, dict) or not entry.keys() <= {"resolve", "add", "platform", "files"}:
        raise LockError(
            "A set of the lock file has unexpected entries",
            where=where,
            found=", ".join(entry) if isinstance(entry, dict) else type(entry).__name__,
            expected="an object with some of resolve, add, platform, files",
        )
    files = tuple(
        _read_file(where, coordinate, facts) for coordinate, facts in sorted(entry.get("files", {}).items())
    )
    return ArtifactSet(
        name, files, tuple(entry.get("resolve", ())), tuple(entry.get("add", ())), entry.get("platform")
    )


def _read_file(where: str, coordinate: str, facts: object) -> Artifact:
    match facts:
        case {"sha256": str(sha256), "size": int(size)} if _SHA256.fullmatch(sha256) and size > 0:
            return parse_coordinate(coordinate, sha256=sha256, size=size)
        case _:
            raise LockError(
                "A file in the lock file has no valid checksum or size",
                where=f"{where} {coordinate}",
                found=str(facts),
                expected='{"sha256": 64 hex digits, "size": bytes}',
            )


def _set_as_json(artifact_set: ArtifactSet) -> dict[str, Any]:
    declared: dict[str, Any] = {
        "platform": artifact_set.platform,
        "resolve": list(artifact_set.resolve),
        "add": list(artifact_set.add),
    }
    files = {
        file.coordinate: {"sha256": file.sha256, "size": file.size} for file in sorted(artifact_set.files)
    }
    return {key: value for key, value in declared.items() if value} | {"files": files}

"""Update lock files after an edit of `resolve` or `add`: `python -m tributary.artifacts.renew FILE…`.

It resolves the artifacts and hashes the repository's current files. Review the difference before you commit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from jgo.maven import Dependency, MavenContext

from tributary.artifacts.cache import sha256_of
from tributary.artifacts.fetch import THREADS, TIMEOUT_SECONDS
from tributary.artifacts.lock import Artifact, ArtifactSet, parse_coordinate, read_lock, write_lock

_RUNS_WITH = (None, "compile", "runtime")


def main(arguments: Sequence[str]) -> None:
    with TemporaryDirectory() as folder:
        context = MavenContext(repo_cache=Path(folder), timeout=TIMEOUT_SECONDS)
        for path in map(Path, arguments):
            lock = read_lock(path)
            sets = {name: _renewed(context, artifact_set) for name, artifact_set in lock.sets.items()}
            write_lock(replace(lock, sets=sets))
            print(f"{path}: {sum(len(renewed.files) for renewed in sets.values())} files")


def _renewed(context: MavenContext, artifact_set: ArtifactSet) -> ArtifactSet:
    resolved = _resolve(context, artifact_set.resolve) if artifact_set.resolve else set()
    alone = {parse_coordinate(coordinate) for coordinate in artifact_set.add}
    with ThreadPoolExecutor(THREADS) as threads:
        files = threads.map(lambda artifact: _pin(context, artifact), sorted(resolved | alone))
        return replace(artifact_set, files=tuple(files))


def _resolve(context: MavenContext, coordinates: Sequence[str]) -> set[Artifact]:
    roots = [context.create_dependency(coordinate) for coordinate in coordinates]
    given, drawn_in = context.resolver.resolve(roots)
    return {_artifact(dependency) for dependency in [*given, *drawn_in] if dependency.scope in _RUNS_WITH}


def _artifact(dependency: Dependency) -> Artifact:
    # Maven's packaging `bundle` is an OSGi jar, and the file is a jar.
    packaging = "jar" if dependency.type in ("jar", "bundle") else dependency.type
    return Artifact(
        dependency.groupId, dependency.artifactId, dependency.version, dependency.classifier, packaging
    )


def _pin(context: MavenContext, artifact: Artifact) -> Artifact:
    component = context.project(artifact.group, artifact.artifact).at_version(artifact.version)
    path = component.artifact(artifact.classifier, artifact.packaging).resolve()
    return replace(artifact, sha256=sha256_of(path), size=path.stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])

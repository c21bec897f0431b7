"""The contents of each Kafka Connect plugin, and the zips from which workers load them."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from connectors.connect_classes import JAR, compile_classes, inputs_digest
from connectors.engines.registry import engine_of, source_plugins
from tributary.artifacts.cache import cached_folder, is_intact, sha256_of
from tributary.artifacts.fetch import FetchProgress, fetch
from tributary.artifacts.lock import Artifact, read_lock
from tributary.artifacts.zips import unpack_zip, write_zip
from tributary.contract.lake import Lake

LOCK = Path(__file__).with_name("plugins.lock.json")
_LAYOUT = 1
"""The zip's format version. Increase it when the same artifacts must give a different zip."""


@dataclass(frozen=True)
class Plugin:
    """A built plugin. `name` is also the folder inside the zip; `sha256` is the zip's."""

    name: str
    zip: Path
    sha256: str


def plugins_for(lake: Lake) -> frozenset[str]:
    """Return the sets of the plugin lock that a lake needs: its engines' connectors, and the sink."""
    of_lake = {engine_of(source).plugin for source in lake.sources}
    return frozenset(read_lock(LOCK).sets.keys() - (source_plugins() - of_lake))


def build_plugins(
    out: Path | None = None,
    progress: Callable[[FetchProgress], None] | None = None,
    names: Collection[str] | None = None,
) -> tuple[Plugin, ...]:
    """Build one zip for each set of the plugin lock, in the cache, and copy it to `out` if given.

    names  of the sets; None: all

    A zip's name is the plugin's name and the first digits of the zip's SHA-256. The same lock gives the same
    bytes on any machine. Fetches missing files; raises FetchError or LockError.
    """
    plugins = tuple(
        _cached(name, artifacts.files, progress)
        for name, artifacts in read_lock(LOCK).sets.items()
        if names is None or name in names
    )
    return plugins if out is None else tuple(_copied(plugin, out) for plugin in plugins)


def unpack_plugins(plugins: tuple[Plugin, ...]) -> Path:
    """Return the cached folder for a worker's `plugin.path`. It contains a folder for each plugin."""

    def fill(folder: Path) -> None:
        for plugin in plugins:
            unpack_zip(plugin.zip, folder)

    return cached_folder("plugin-path", "-".join(sorted(plugin.sha256[:16] for plugin in plugins)), fill)


def _cached(
    name: str, artifacts: tuple[Artifact, ...], progress: Callable[[FetchProgress], None] | None
) -> Plugin:
    def fill(folder: Path) -> None:
        unnamed = folder / "plugin"
        write_zip(unnamed, _contents(name, fetch(artifacts, progress)))
        sha256 = sha256_of(unnamed)
        unnamed.rename(folder / f"{name}-{sha256[:12]}.zip")
        (folder / "sha256").write_text(sha256)

    key = f"{name}-{_digest(name, artifacts)}"
    plugin = _built(name, cached_folder("plugins", key, fill))
    if not is_intact(plugin.zip, plugin.sha256):
        shutil.rmtree(plugin.zip.parent)
        plugin = _built(name, cached_folder("plugins", key, fill))
    return plugin


def _built(name: str, folder: Path) -> Plugin:
    sha256 = (folder / "sha256").read_text()
    return Plugin(name, folder / f"{name}-{sha256[:12]}.zip", sha256)


def _copied(plugin: Plugin, out: Path) -> Plugin:
    out.mkdir(parents=True, exist_ok=True)
    return Plugin(plugin.name, Path(shutil.copyfile(plugin.zip, out / plugin.zip.name)), plugin.sha256)


def _has_classes(name: str) -> bool:
    """Tell whether the plugin also contains our own classes for Connect."""
    return name in source_plugins()


def _digest(name: str, artifacts: tuple[Artifact, ...]) -> str:
    inputs: list[object] = [_LAYOUT, *([artifact.filename, artifact.sha256] for artifact in artifacts)]
    if _has_classes(name):
        inputs.append(inputs_digest())
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:16]


def _contents(name: str, files: Mapping[Artifact, Path]) -> dict[str, Path | bytes]:
    contents: dict[str, Path | bytes] = {}
    for artifact, path in files.items():
        if artifact.packaging == "tar.gz":
            contents.update(_archived(name, path))
        else:
            contents[f"{name}/{artifact.filename}"] = path
    if _has_classes(name):
        contents[f"{name}/{JAR}"] = compile_classes(path for path in files.values() if path.suffix == ".jar")
    return contents


def _archived(name: str, path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield all files of a plugin archive, including licenses, without the archive's top folder."""
    with tarfile.open(path) as archive:
        for member in archive:
            if content := archive.extractfile(member):
                yield str(PurePosixPath(name, *PurePosixPath(member.name).parts[1:])), content.read()

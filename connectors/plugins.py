"""The contents of each Kafka Connect plugin, and the zips from which workers load them."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from connectors import avro_converter
from connectors.avro_converter import LOCK
from connectors.connect_classes import JAR, compile_classes, inputs_digest
from connectors.engines.registry import engine_of, source_plugins
from tributary.artifacts.cache import cached_folder, is_intact, sha256_of
from tributary.artifacts.fetch import FetchProgress, fetch
from tributary.artifacts.lock import Artifact, read_lock
from tributary.artifacts.zips import unpack_zip, write_zip
from tributary.contract.lake import Lake
from tributary.contract.schema_registry import RegistryKind

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
    of_lake = {engine_of(source).plugin for source in lake.connected_sources}
    return frozenset(_plugin_sets() - (source_plugins() - of_lake))


def build_plugins(
    out: Path | None = None,
    progress: Callable[[FetchProgress], None] | None = None,
    names: Collection[str] | None = None,
    avro: RegistryKind | None = None,
) -> tuple[Plugin, ...]:
    """Build one zip for each set of the plugin lock, in the cache, and copy it to `out` if given.

    names  of the sets; None: all
    avro   the kind of registry whose Avro converter the sources' plugins contain; None: no such converter

    A zip's name is the plugin's name and the first digits of the zip's SHA-256. The same lock gives the same
    bytes on any machine. Fetches missing files; raises FetchError or LockError.
    """
    lock = read_lock(LOCK)
    plugins = tuple(
        _cached(_Contents(name, lock[name], avro if name in source_plugins() else None), progress)
        for name in lock.sets
        if name in (_plugin_sets() if names is None else names)
    )
    return plugins if out is None else tuple(_copied(plugin, out) for plugin in plugins)


def plugin_name(plugin: str, avro: RegistryKind | None) -> str:
    """Return the name of a source's plugin, which tells the Avro converter in it."""
    return plugin if avro is None else f"{plugin}-avro-{avro}"


def _plugin_sets() -> frozenset[str]:
    return frozenset(read_lock(LOCK).sets.keys() - {*avro_converter.SETS.values()})


def unpack_plugins(plugins: tuple[Plugin, ...]) -> Path:
    """Return the cached folder for a worker's `plugin.path`. It contains a folder for each plugin."""

    def fill(folder: Path) -> None:
        for plugin in plugins:
            unpack_zip(plugin.zip, folder)

    return cached_folder("plugin-path", "-".join(sorted(plugin.sha256[:16] for plugin in plugins)), fill)


@dataclass(frozen=True)
class _Contents:
    """The contents of a plugin: a set of the plugin lock, perhaps our own classes, and an Avro converter."""

    set_name: str
    artifacts: tuple[Artifact, ...]
    avro: RegistryKind | None

    @property
    def name(self) -> str:
        return plugin_name(self.set_name, self.avro)

    @property
    def has_classes(self) -> bool:
        """Return whether the plugin also contains our own classes for Connect."""
        return self.set_name in source_plugins()

    @property
    def digest(self) -> str:
        inputs: list[object] = [
            _LAYOUT,
            *([artifact.filename, artifact.sha256] for artifact in self.artifacts),
        ]
        if self.has_classes:
            inputs.append(inputs_digest())
        if self.avro is not None:
            inputs.append(avro_converter.pinned_by(self.avro))
        return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:16]


def _cached(plugin: _Contents, progress: Callable[[FetchProgress], None] | None) -> Plugin:
    name = plugin.name

    def fill(folder: Path) -> None:
        unnamed = folder / "plugin"
        write_zip(unnamed, _files(plugin, progress))
        sha256 = sha256_of(unnamed)
        unnamed.rename(folder / f"{name}-{sha256[:12]}.zip")
        (folder / "sha256").write_text(sha256)

    key = f"{name}-{plugin.digest}"
    built = _built(name, cached_folder("plugins", key, fill))
    if not is_intact(built.zip, built.sha256):
        shutil.rmtree(built.zip.parent)
        built = _built(name, cached_folder("plugins", key, fill))
    return built


def _built(name: str, folder: Path) -> Plugin:
    sha256 = (folder / "sha256").read_text()
    return Plugin(name, folder / f"{name}-{sha256[:12]}.zip", sha256)


def _copied(plugin: Plugin, out: Path) -> Plugin:
    out.mkdir(parents=True, exist_ok=True)
    return Plugin(plugin.name, Path(shutil.copyfile(plugin.zip, out / plugin.zip.name)), plugin.sha256)


def _files(plugin: _Contents, progress: Callable[[FetchProgress], None] | None) -> dict[str, Path | bytes]:
    name, files = plugin.name, fetch(plugin.artifacts, progress)
    contents: dict[str, Path | bytes] = {}
    for artifact, path in files.items():
        if artifact.packaging == "tar.gz":
            contents.update(_archived(name, path))
        else:
            contents[f"{name}/{artifact.filename}"] = path
    if plugin.has_classes:
        contents[f"{name}/{JAR}"] = compile_classes(path for path in files.values() if path.suffix == ".jar")
    if plugin.avro is not None:
        jars = avro_converter.converter_jars(plugin.avro, progress)
        contents |= {f"{name}/{jar}": content for jar, content in jars.items()}
    return contents


def _archived(name: str, path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield all files of a plugin archive, including licenses, without the archive's top folder."""
    with tarfile.open(path) as archive:
        for member in archive:
            if content := archive.extractfile(member):
                yield str(PurePosixPath(name, *PurePosixPath(member.name).parts[1:])), content.read()

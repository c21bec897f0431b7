"""Find the built plugins, and hand them to MSK Connect."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Aws
from aws_cdk import aws_kafkaconnect as kafkaconnect
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from connectors.avro_converter import converter_kind
from connectors.engines.registry import engine_of
from connectors.plugins import plugin_name
from stacks.base import TributaryStack, deployment_of
from tributary.contract.aws import OtherSink
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.schema_registry import RegistryKind

ICEBERG_SINK = "iceberg-sink"
_OTHER_SINK = "own-sink"
_DIGITS = 12
"""The number of digits of a zip's SHA-256 that `tributary plugins build` puts into its name."""


@dataclass(frozen=True)
class PluginZip:
    """A built plugin. `digest` is the first digits of the zip's SHA-256."""

    name: str
    path: Path
    digest: str


@dataclass(frozen=True)
class ConnectPlugins:
    """The plugins of a lake's connectors, as existing zips.

    sources  by the engine of a source
    """

    sources: Mapping[str, PluginZip]
    sink: PluginZip


def find_plugins(lake: Lake, lake_file: Path, folder: Path) -> ConnectPlugins:
    """Find the output of `tributary plugins build` in `folder`, and the user's own sink. Fetch nothing.

    Raise TributaryError if a zip is missing, or is not the one that the lake file pins.
    """
    sink, avro = deployment_of(lake).connect.sink, converter_kind(lake, here=False)
    return ConnectPlugins(
        sources={
            source.engine: _built(plugin_name(engine_of(source).plugin, avro), folder, avro)
            for source in lake.connected_sources
        },
        sink=_built(ICEBERG_SINK, folder) if sink is None else _own(sink, lake_file.parent),
    )


class ConnectorPlugin(Construct):
    """A plugin on MSK Connect, with its `arn` and `revision`.

    Its name contains the digest of its content, because MSK Connect cannot change a plugin.
    """

    def __init__(self, scope: Construct, construct_id: str, plugin: PluginZip) -> None:
        super().__init__(scope, construct_id)
        stack = TributaryStack.of(self)
        assert isinstance(stack, TributaryStack)
        asset = assets.Asset(self, "Zip", path=str(plugin.path))
        made = kafkaconnect.CfnCustomPlugin(
            self,
            "Plugin",
            name=f"{stack.names.resource}-{plugin.name}-{plugin.digest}",
            content_type="ZIP",
            location=kafkaconnect.CfnCustomPlugin.CustomPluginLocationProperty(
                s3_location=kafkaconnect.CfnCustomPlugin.S3LocationProperty(
                    bucket_arn=f"arn:{Aws.PARTITION}:s3:::{asset.s3_bucket_name}",
                    file_key=asset.s3_object_key,
                )
            ),
        )
        self.arn = made.attr_custom_plugin_arn
        self.revision = made.attr_revision


def _built(name: str, folder: Path, avro: RegistryKind | None = None) -> PluginZip:
    build = f"tributary plugins build --out {folder}{'' if avro is None else f' --avro {avro}'}"
    form = re.compile(rf"{re.escape(name)}-([0-9a-f]{{{_DIGITS}}})\.zip")
    zips = [
        PluginZip(name, path, match[1])
        for path in sorted(folder.glob(f"{name}-*.zip"))
        if (match := form.fullmatch(path.name))
    ]
    match zips:
        case [only]:
            return only
        case []:
            raise TributaryError(
                "a plugin for Kafka Connect has not been built",
                where=str(folder),
                expected=f"{name}-….zip",
                remedy=f"Run: {build}",
            )
        case _:
            raise TributaryError(
                "the folder has several builds of a plugin, and only one can be deployed",
                where=str(folder),
                found=" and ".join(each.path.name for each in zips),
                remedy=f"Remove them all, then run: {build}",
            )


def _own(sink: OtherSink, folder: Path) -> PluginZip:
    path = folder / sink.plugin
    if not path.is_file():
        raise TributaryError(
            "there is no such plugin", where="[aws.connect.sink].plugin", found=str(path), expected="a zip"
        )
    with path.open("rb") as content:
        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
    if sha256 != sink.sha256:
        raise TributaryError(
            f"the plugin {path} is not the one that the lake file pins",
            where="[aws.connect.sink].sha256",
            found=sha256,
            expected=sink.sha256,
            remedy="Download the plugin again, or pin this one if you trust it.",
        )
    return PluginZip(_OTHER_SINK, path, sha256[:_DIGITS])

"""Assemble the stacks of a lake: which stack uses which, and the order of deployment."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from aws_cdk import Stack
from constructs import Construct

from stacks.analytics.stack import AnalyticsStack
from stacks.available_on_aws import check_known
from stacks.base import deployment_of
from stacks.connect.connector_plugin import find_plugins
from stacks.connect.stack import ConnectStack
from stacks.database.stack import DatabaseStack
from stacks.kafka.stack import StreamingStack
from stacks.lake.stack import LakeStack
from stacks.network import NetworkStack
from stacks.observability.stack import ObservabilityStack
from stacks.processing.spark_package import LakeFiles
from stacks.processing.stack import ProcessingStack
from stacks.verification.stack import VerificationStack
from tributary.contract.lake import Lake


def assemble(
    app: Construct, lake: Lake, lake_file: Path, assets: Path, environment: str | None = None
) -> None:
    """Add all stacks of the lake to an app or a stage. Raise TributaryError.

    assets       the folder with the output of `tributary plugins build` and `tributary package`
    environment  the one in which the lake file was read, if any

    These can be deployed in parallel: network and lake, then database and streaming, then connect and
    processing. Observability comes last. Stacks are destroyed in the opposite order.

    A lake whose sources all have streams of items has no streaming and no connect, and a database only if
    the lake creates a stream. Only `[aws.dbt]` and
    `[aws.quicksight]` bring analytics, and only `[aws.verify]` brings verification.
    """
    check_known(lake)
    files = LakeFiles(lake_file, environment)
    if lake.connected_sources:
        network, lake_stack, last = _assemble_with_kafka(app, lake, files, assets)
    else:
        network, lake_stack, last = _assemble_without_kafka(app, lake, files, assets)
    if AnalyticsStack.is_needed(lake):
        analytics = AnalyticsStack(app, lake, network, lake_stack, lake_file.parent)
        _build(analytics, after=[network, lake_stack])
        _build(last, after=[analytics])


_Ends = tuple[NetworkStack, LakeStack, ObservabilityStack]
"""The stacks on which others build, and the last one."""


def _assemble_with_kafka(app: Construct, lake: Lake, files: LakeFiles, assets: Path) -> _Ends:
    plugins = find_plugins(lake, files.path, assets)
    network = NetworkStack(app, lake)
    lake_stack = LakeStack(app, lake)
    database = DatabaseStack(app, lake, network)
    streaming = StreamingStack(app, lake, network)
    connect = ConnectStack(app, lake, network, lake_stack, database, streaming, plugins)
    processing = ProcessingStack(app, lake, network, lake_stack, database, streaming, assets, files)
    observability = ObservabilityStack(app, lake, processing)

    # Most stacks refer to others' resources by name, so the templates alone do not show the order.
    _build(database, after=[network])
    _build(streaming, after=[network])
    _build(connect, after=[lake_stack, database, streaming])
    _build(processing, after=[lake_stack, streaming, *([database] if database.streams else [])])
    _build(observability, after=[connect, processing])
    if VerificationStack.is_needed(lake):
        verification = VerificationStack(app, lake, network, lake_stack, database, streaming, files)
        _build(verification, after=[connect])
        _build(observability, after=[verification])
    return network, lake_stack, observability


def _assemble_without_kafka(app: Construct, lake: Lake, files: LakeFiles, assets: Path) -> _Ends:
    """Add the stacks of a lake whose app reads all its streams itself: neither Kafka nor connectors."""
    network = NetworkStack(app, lake)
    lake_stack = LakeStack(app, lake)
    database = DatabaseStack(app, lake, network) if deployment_of(lake).items else None
    processing = ProcessingStack(app, lake, network, lake_stack, database, None, assets, files)
    observability = ObservabilityStack(app, lake, processing)
    if database is not None:
        _build(processing, after=[database])
    _build(processing, after=[network, lake_stack])
    _build(observability, after=[processing])
    return network, lake_stack, observability


def _build(stack: Stack, after: Iterable[Stack]) -> None:
    for before in after:
        stack.add_stack_dependency(before)

"""How the stacks of a lake hang together: which is built from which, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from aws_cdk import App, Stack

from stacks.checks.aws_names import check_known
from stacks.connect.connector_plugin import find_plugins
from stacks.connect.stack import ConnectStack
from stacks.database.stack import DatabaseStack
from stacks.kafka.stack import StreamingStack
from stacks.lake.stack import LakeStack
from stacks.network import NetworkStack
from stacks.observability.stack import ObservabilityStack
from stacks.processing.stack import ProcessingStack
from tributary.contract.lake import Lake


def assemble(app: App, lake: Lake, lake_file: Path, assets: Path) -> None:
    """Adds all stacks of the lake to the app.

    assets  the folder with what `tributary plugins build` and `tributary package` have built

    Side by side can be built network and lake, then database and streaming, then connect and processing.
    Observability comes last. They are destroyed the other way round. Raises TributaryError.
    """
    check_known(lake)
    plugins = find_plugins(lake, lake_file, assets)
    network = NetworkStack(app, lake)
    lake_stack = LakeStack(app, lake)
    database = DatabaseStack(app, lake, network)
    streaming = StreamingStack(app, lake, network)
    connect = ConnectStack(app, lake, network, lake_stack, database, streaming, plugins)
    processing = ProcessingStack(app, lake, network, lake_stack, streaming, assets, lake_file)
    observability = ObservabilityStack(app, lake, processing)

    # Most refer to each other's resources by name: nothing in the templates shows that these come first.
    _build(database, after=[network])
    _build(streaming, after=[network])
    _build(connect, after=[lake_stack, database, streaming])
    _build(processing, after=[lake_stack, streaming])
    _build(observability, after=[connect, processing])


def _build(stack: Stack, after: Iterable[Stack]) -> None:
    for before in after:
        stack.add_stack_dependency(before)

"""The steps that start the pipeline, and the order in which they depend on each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tributary.contract.lake import Lake
from tributary.contract.source import Source
from tributary.local import apicurio, connect, dynamodb, kafka, kinesis, postgres, s3
from tributary.local.engine_servers import server_of, servers_for

PLUGINS = "plugins"
BRONZE = "bronze"
REGISTRY = "registry"


@dataclass(frozen=True)
class Step:
    """One step, which begins once all steps in `after` are done."""

    name: str
    after: tuple[str, ...] = ()


def start_plan(lake: Lake, resnapshot: Collection[Source]) -> Iterator[Step]:
    """Yield the steps of a start, each after its predecessors. Raises NoServerHere.

    The step PLUGINS, which has a result, begins before them. Connect comes before the database of a source in
    `resnapshot`, because that source's connector is removed before its database is prepared. REGISTRY only
    looks whether the lake file's registry answers.
    """
    # PostgreSQL also holds the catalog of bronze.
    of_engines = sorted({postgres.SERVICE, *servers_for(lake)})
    if has_item_servers(lake):
        yield Step(kinesis.SERVICE)
        yield Step(dynamodb.SERVICE, (kinesis.SERVICE,))
    if not lake.connected_sources:
        yield from map(Step, (*of_engines, s3.SERVICE))
        return
    of_registry = () if lake.registry is None else (apicurio.SERVICE if lake.has_registry_here else REGISTRY,)
    before_connect = (*of_engines, kafka.SERVICE, s3.SERVICE, *of_registry)
    servers = (*before_connect, connect.SERVICE)
    yield from map(Step, before_connect)
    yield Step(connect.SERVICE, (*before_connect, PLUGINS))
    for source in lake.connected_sources:
        own_server = () if source.connection is not None else (server_of(source).service,)
        yield Step(database_step(source), servers if source in resnapshot else own_server)
        yield Step(connector_step(source), (*servers, database_step(source)))
    yield Step(BRONZE, servers)


def has_item_servers(lake: Lake) -> bool:
    """Return whether a source reads its stream of items from the local DynamoDB and Kinesis."""
    return bool(kinesis.streams_here(lake))


def database_step(source: Source) -> str:
    """Return the name of the step that prepares the source's database."""
    return f"database {source.name}"


def connector_step(source: Source) -> str:
    """Return the name of the step that runs the source's connector."""
    return f"source {source.name}"

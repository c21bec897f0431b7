"""The resources on AWS of the engine that only tests register."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_kms as kms
from aws_cdk import aws_secretsmanager as secretsmanager

from connectors.deployment import SecretsManagerSecret
from connectors.engines.registry import engine_of
from stacks.base import TributaryStack
from stacks.database.engine import CreatingEngineOnAws, NameOnAws, SourceDatabase
from stacks.network import NetworkStack
from stacks.watched import Graph, Threshold, Watched
from tests.engines.abacus import AbacusSource, ExistingAbacus
from tributary.contract.aws import Aws


class AbacusOnAws(CreatingEngineOnAws[AbacusSource, ExistingAbacus]):
    services = ("rds",)
    plugin_construct = "AbacusPlugin"
    sections = ("abacus",)

    def names(self, aws: Aws) -> Iterator[NameOnAws]:
        yield NameOnAws("region", aws.region, frozenset({"us-east-1"}), "a region with monks")

    def add_existing(
        self, stack: TributaryStack, source: AbacusSource, database: ExistingAbacus, network: NetworkStack
    ) -> SourceDatabase:
        assert network.debezium.security_group_id
        return self._database(stack, source, database.host, database.port)

    def add_own(
        self,
        stack: TributaryStack,
        sources: Sequence[AbacusSource],
        network: NetworkStack,
        key: kms.IKey | None,
    ) -> Mapping[str, SourceDatabase]:
        assert network.private.subnets
        assert key is None
        return {source.name: self._database(stack, source, "own.example.org", 7777) for source in sources}

    def watched(self, stack: TributaryStack) -> list[Watched]:
        return [Watched("abacus", "A bead fell.", self._beads(stack), Threshold(1))]

    def graphs(self, stack: TributaryStack) -> list[Graph]:
        return [Graph("Beads", (self._beads(stack),))]

    def _database(self, stack: TributaryStack, source: AbacusSource, host: str, port: int) -> SourceDatabase:
        secret = secretsmanager.Secret(stack, f"{source.name}Secret")
        password = SecretsManagerSecret(f"tributary/{source.name}", "password")
        access = engine_of(source).access(stack.lake, source, host, port, password)
        return SourceDatabase(access, secret, ready=secret)

    def _beads(self, stack: TributaryStack) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace="Abacus", metric_name="Beads", dimensions_map={"Lake": stack.lake.name}
        )

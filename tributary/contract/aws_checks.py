"""Checks across the entries of `[aws]` and the sources of the lake."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from tributary.contract.aws import SERVERLESS_MAX_EVENT_MB, Aws, ExistingCluster, Kafka
from tributary.contract.aws_items import items_problems
from tributary.contract.aws_verify import verify_problems
from tributary.contract.entries import Problem, toml_key
from tributary.contract.source import ExistingDatabase, Source

IAM_PORT = 9098
"""The port of Amazon MSK's brokers for clients in AWS that log in with IAM (MSK developer guide, "Ports")."""

_LISTENERS = {
    9092: "clients without encryption",
    9094: "clients without a login or with certificates",
    9096: "clients that log in with SCRAM",
    9194: "clients with certificates outside AWS",
    9196: "clients that log in with SCRAM outside AWS",
    9198: "clients that log in with IAM outside AWS",
}
"""The other ports of the same page."""


def aws_problems(aws: Aws, lake: str, sources: Mapping[str, Source]) -> Iterator[Problem]:
    """Yield what is wrong in `[aws]` for this lake and its sources. `sources` are by name."""
    yield from _source_problems(aws, sources)
    for name, source in sources.items():
        if name not in aws.source:
            yield from source.problems_on_aws(name, aws)
    if aws.bootstrap.key is not None:
        yield from _key_problems(aws, "[aws.bootstrap].key", aws.bootstrap.key)
    yield from items_problems(aws.items, sources)
    if any(source.item_stream is None for source in sources.values()):
        yield from _kafka_problems(aws)
    if aws.alarms.budget is not None and aws.alarms.email is None:
        what, expected = "nobody would hear of the budget", 'email = "…" beside it'
        yield Problem("[aws.alarms].budget", what, str(aws.alarms.budget), expected)
    if aws.verify is not None:
        yield from verify_problems(aws.network, sources.values())
    prefix = zone_prefix(aws.region)
    for zone in aws.zone_ids:
        if not zone.startswith(prefix):
            entry = "[aws.network.vpc].zones" if aws.network.vpc else "[aws.network].zones"
            expected = f'one of {aws.region}, such as "{prefix}1"'
            yield Problem(entry, "a zone of another region", zone, expected)
    if aws.deletes_data and aws.protected:
        what = "a lake that is to be deleted cannot be protected"
        yield Problem("[aws].protected", what, "true", 'false, or on_destroy = "retain"')
    if aws.deletes_data and aws.delete_data_of != lake:
        found = json.dumps(aws.delete_data_of) if aws.delete_data_of else "nothing"
        what = "data may be deleted only where two entries agree"
        yield Problem("[aws].delete_data_of", what, found, f'"{lake}"')


def zone_prefix(region: str) -> str:
    """Return how the ids of the region's zones begin: `apse2-az` for ap-southeast-2.

    See the AWS RAM User Guide, "Availability Zone IDs for your AWS resources".
    """
    area, *directions, number = region.split("-")
    return area + "".join(_INITIALS.get(each, each[0]) for each in directions) + number + "-az"


_INITIALS = {"northeast": "ne", "northwest": "nw", "southeast": "se", "southwest": "sw"}


def event_size_problems(kafka: Kafka, max_event_mb: int | None) -> Iterator[Problem]:
    if kafka.kind == "serverless" and (max_event_mb or 0) > SERVERLESS_MAX_EVENT_MB:
        what = "events that MSK Serverless does not take"
        yield Problem("[lake].max_event_mb", what, str(max_event_mb), f"{SERVERLESS_MAX_EVENT_MB} at most")


def _source_problems(aws: Aws, sources: Mapping[str, Source]) -> Iterator[Problem]:
    for name, database in aws.source.items():
        entry = f"[aws.source.{toml_key(name)}]"
        if name not in sources:
            yield Problem(entry, "a database of an unknown source", name, " or ".join(sources))
        elif sources[name].item_stream is not None:
            what = "a source with a stream of items has no database server to name"
            yield Problem(entry, what, "a section", f"no such section: [source.{toml_key(name)}] is enough")
        else:
            yield from _secret_problems(aws, entry, database)
    by_letters: dict[str, str] = {}
    for name in sources:
        # A resource's id in a template cannot hold underscores.
        if (other := by_letters.setdefault(name.replace("_", ""), name)) != name:
            what = "on AWS the names of two sources may not differ only in underscores"
            yield Problem(f"[source.{toml_key(name)}]", what, name, f"another name beside {other}")


def _secret_problems(aws: Aws, entry: str, database: ExistingDatabase) -> Iterator[Problem]:
    """Yield why the connector and the deployment cannot read the secret of an existing database."""
    _, _, _, region, account, *_ = database.secret.split(":")
    if region != aws.region:
        yield Problem(
            f"{entry}.secret", "a secret of another region", database.secret, f"one of {aws.region}"
        )
    if aws.account not in (None, account):
        # The connector finds the secret by its name.
        expected = f"one of the account {aws.account}, as in [aws].account"
        yield Problem(f"{entry}.secret", "a secret of another account", database.secret, expected)
    if database.secret_key is not None:
        yield from _key_problems(aws, f"{entry}.secret_key", database.secret_key)


def _key_problems(aws: Aws, entry: str, key: str) -> Iterator[Problem]:
    if key.split(":")[3] != aws.region:
        yield Problem(entry, "a key of another region", key, f"one of {aws.region}")


def _existing_cluster_problems(aws: Aws, cluster: ExistingCluster) -> Iterator[Problem]:
    _, _, _, region, account, _ = cluster.arn.split(":")
    if region != aws.region:
        yield Problem(
            "[aws.kafka.cluster].arn", "a cluster of another region", cluster.arn, f"one of {aws.region}"
        )
    if aws.account not in (None, account):
        expected = f"one of the account {aws.account}, as in [aws].account"
        yield Problem("[aws.kafka.cluster].arn", "a cluster of another account", cluster.arn, expected)
    if aws.kafka.kind != cluster.kind:
        what = "not the kind of the existing cluster, by its ARN"
        yield Problem("[aws.kafka].kind", what, f'"{aws.kafka.kind}"', f'kind = "{cluster.kind}"')
    if cluster.ports != {IAM_PORT}:
        ways = [_LISTENERS[port] for port in sorted(cluster.ports & _LISTENERS.keys())]
        listener = f", which are for {' and '.join(ways)}" if ways else ""
        yield Problem(
            "[aws.kafka.cluster].bootstrap_servers",
            "MSK Connect and the Spark app log in with IAM, from within AWS",
            f"{cluster.bootstrap_servers}{listener}",
            f"the addresses of the cluster's IAM listener, with port {IAM_PORT}",
        )
    if aws.network.vpc is None:
        what, expected = "an existing cluster is in an existing VPC", "[aws.network.vpc]"
        yield Problem("[aws.kafka.cluster]", what, "a VPC of the lake's own", expected)


def _kafka_problems(aws: Aws) -> Iterator[Problem]:
    kafka = aws.kafka
    if kafka.cluster is not None:
        yield from _existing_cluster_problems(aws, kafka.cluster)
        return
    if kafka.kind == "serverless":
        return
    if aws.brokers % aws.zone_count:
        expected = f"a multiple of the {aws.zone_count} availability zones"
        yield Problem("[aws.kafka].brokers", "brokers must be spread evenly", str(aws.brokers), expected)
    if kafka.replication > aws.brokers:
        entry, expected = "[aws.kafka].replication", f"at most {aws.brokers}"
        yield Problem(entry, "more replicas than brokers", str(kafka.replication), expected)
    if kafka.is_express and (kafka.replication, kafka.min_insync) != (3, 2):
        what = "Express brokers keep three replicas, two of them in sync"
        found = f"replication = {kafka.replication}, min_insync = {kafka.min_insync}"
        yield Problem("[aws.kafka]", what, found, "replication = 3, min_insync = 2")
    if kafka.min_insync >= kafka.replication:
        entry, expected = "[aws.kafka].min_insync", f"less than replication, {kafka.replication}"
        yield Problem(entry, "no broker could fail or restart", str(kafka.min_insync), expected)
    if kafka.storage_max_gb < kafka.storage_gb:
        entry, expected = "[aws.kafka].storage_max_gb", f"at least storage_gb, {kafka.storage_gb}"
        yield Problem(entry, "less than at the start", str(kafka.storage_max_gb), expected)

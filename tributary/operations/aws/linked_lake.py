"""A deployed lake with links to its sources, from a machine in the lake's network.

A link does what the deployed connector does: it takes address, login and encryption from the connector's own
config on MSK Connect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from pydantic import SecretStr

from connectors.certificates import PEM, RDS_ROOTS, TRUST_STORE
from connectors.engines.engine import Encryption, Login, NotConnected
from connectors.engines.registry import engine_of
from tributary.api.open_lake import OpenLake
from tributary.aws.session import AwsSession, told_errors
from tributary.aws.stack_outputs import NotDeployed
from tributary.contract.aws_names import HASH_SALT_KEY, Output
from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake
from tributary.contract.remedies import BringUp, CheckStatus
from tributary.contract.source import Source
from tributary.contract.table_name import TableName
from tributary.local.state import StateFolder
from tributary.operations.aws.connectors import read_config
from tributary.operations.aws.deployed_lake import DeployedLake
from tributary.operations.aws.jobs import read_stoppable
from tributary.operations.aws.lease import Lease
from tributary.operations.kafka_cluster import KafkaCluster
from tributary.operations.keeping import alone
from tributary.operations.pauses import PauseFiles
from tributary.operations.reconcile.proof import SourceLink
from tributary.operations.snapshots.record_files import RecordFiles, read_known, read_reasons
from tributary.operations.stored_offsets import stored_offsets

if TYPE_CHECKING:
    from tributary.operations.reconcile.items import ItemLink

_SECRET = re.compile(r"\$\{secretsmanager:([^:}]+):([^:}]+)\}")
IN_THE_NETWORK = (
    "If the server does not answer, run the command where the lake's private network can be reached: "
    "over a VPN, or on a machine in it."
)


class SourceOutOfReach(TributaryError):
    """The database of a deployed lake cannot be reached from here, or lets nobody log in."""


class SecretUnfit(TributaryError):
    """A secret of the deployed lake has another form than its connector needs."""


def msk(session: AwsSession, bootstrap: str) -> KafkaCluster:
    """Return how to reach a cluster of Amazon MSK as the caller of the command, over IAM.

    The token signs with the credentials that AWS's own tools find, and is valid for 15 minutes. librdkafka
    asks for a new one in time.
    """

    def token(_: str) -> tuple[str, float]:
        text, expires_ms = MSKAuthTokenProvider.generate_auth_token(session.region)
        return text, expires_ms / 1000

    login = {"security.protocol": "SASL_SSL", "sasl.mechanisms": "OAUTHBEARER", "oauth_cb": token}
    return KafkaCluster(bootstrap, login)


@dataclass(frozen=True)
class LinkedLake:
    """A deployed lake with the links to its sources (`SourcedLake`).

    state        the folder with this machine's locks: only one process of it does some work
    known_kafka  the cluster of the lake's connectors. None for a lake without any
    connected    the links to the sources that Debezium reads
    """

    deployed: DeployedLake
    open_lake: OpenLake
    state: StateFolder
    known_kafka: KafkaCluster | None
    connected: tuple[SourceLink, ...]

    @property
    def lake(self) -> Lake:
        return self.open_lake.lake

    @property
    def kafka(self) -> KafkaCluster:
        assert self.known_kafka is not None, "nobody asks for Kafka without a source that Debezium reads"
        return self.known_kafka

    def links(self) -> tuple[SourceLink, ...]:
        return self.connected

    def item_links(self) -> tuple[ItemLink, ...]:
        """Return the links to the sources of items. Raises NotDeployed."""
        return _item_links(self.deployed, self.open_lake)

    @contextmanager
    def alone(self, work: str) -> Iterator[bool]:
        # The local lake of this folder has keepers of its own.
        with alone(self.state, f"aws-{work}") as is_alone_here:
            if not is_alone_here:
                yield False
                return
            with Lease(self.deployed.session.s3, self.open_lake.quarantine, work).held() as is_alone:
                yield is_alone


@contextmanager
def linked_lake(
    deployed: DeployedLake, lake: OpenLake, kafka: KafkaCluster | None, state: StateFolder
) -> Iterator[LinkedLake]:
    """Open the links. They are usable within the context. `kafka` is None if Debezium reads no source.

    Raises NotDeployed, SecretUnfit, KafkaUnreachable, OffsetsUnreadable, and boto3's errors.
    """
    state.create()
    with ExitStack() as open_topics:
        links: list[SourceLink] = []
        for source in deployed.lake.connected_sources:
            assert kafka is not None, "a source that Debezium reads has a cluster"
            links.append(_link(deployed, lake, kafka, source, open_topics))
        yield LinkedLake(deployed, lake, state, kafka, tuple(links))


def kafka_of(deployed: DeployedLake) -> KafkaCluster | None:
    """Return the cluster that the lake's connectors write to, if it has any.

    Raises NotDeployed and AwsError."""
    if not deployed.lake.connected_sources:
        return None
    # Without credentials, librdkafka would only say that a token is missing, after ten seconds.
    deployed.session.read_credentials()
    return msk(deployed.session, deployed.output("streaming", Output.BOOTSTRAP_SERVERS))


def _link(
    deployed: DeployedLake, lake: OpenLake, kafka: KafkaCluster, source: Source, open_topics: ExitStack
) -> SourceLink:
    session, names = deployed.session, deployed.lake.source_names(source)
    config = read_config(session, names.connector)
    if config is None:
        raise NotDeployed(
            "the source's connector does not exist",
            where=f"MSK Connect, connector {names.connector}",
            remedy=BringUp(),
        )
    offsets = open_topics.enter_context(stored_offsets(kafka, names.connect_offsets_topic))

    def read_paused() -> Collection[TableName]:
        # A new client each time, because credentials expire.
        return PauseFiles(lake.files.filesystem, lake.lake.names, lake.quarantine).read()

    def files() -> RecordFiles:
        return RecordFiles(lake.files.filesystem, lake.lake.names, lake.quarantine)

    return SourceLink(
        lake=deployed.lake,
        source=source,
        connect=_connect(source, partial(login_of, config, partial(_read_secret, session))),
        kafka=kafka,
        files=lake.files,
        silver=lake.silver,
        read_offset=partial(offsets.of, names.connector),
        read_left_out_later=lambda: read_reasons(files(), lake.lake),
        read_known=lambda: read_known(files(), source.name),
        read_paused=read_paused,
        hash_salt=(
            cache(partial(_read_secret, session, deployed.names.hash_salt, HASH_SALT_KEY))
            if deployed.lake.hashes_columns_of(source)
            else None
        ),
        payloads=lake.payloads,
    )


def login_of(config: Mapping[str, str], read_secret: Callable[[str, str], SecretStr]) -> Login:
    """Return how a connector with this config logs in. Raises SecretUnfit, and what `read_secret` raises.

    `read_secret` returns a key of a secret, by the secret's name. The roots of Amazon's databases vouch for
    the server if they do so for the connector; else the session is encrypted, and nobody vouches.
    """
    named = _SECRET.fullmatch(config.get("database.password", ""))
    if named is None:
        raise SecretUnfit(
            "the connector's password is no reference to a secret",
            where=f"MSK Connect, connector {config.get('name', '')}, option database.password",
            expected="${secretsmanager:NAME:KEY}",
            remedy=CheckStatus(),
        )
    verifies = any(text in (PEM, TRUST_STORE) for text in config.values())
    return Login(
        host=config["database.hostname"],
        port=int(config["database.port"]),
        user=config["database.user"],
        password=read_secret(named[1], named[2]),
        encryption=Encryption(str(RDS_ROOTS) if verifies else None),
    )


def _connect(source: Source, read_login: Callable[[], Login]) -> Callable[[], Any]:
    def connect() -> Any:
        # Each time, because the password can change.
        login = read_login()
        try:
            return engine_of(source).connect(source, login)
        except NotConnected as error:
            raise SourceOutOfReach(
                "no connection to the database",
                where=f"[source.{source.name}], {login.host}:{login.port} as {login.user}",
                found=error.found,
                remedy=IN_THE_NETWORK,
            ) from error

    return connect


def _read_secret(session: AwsSession, name: str, key: str) -> SecretStr:
    """Return a key of a JSON secret. Raises SecretUnfit and AwsError."""
    with told_errors(session.region):
        secret = session.secretsmanager.get_secret_value(SecretId=name)
    try:
        return SecretStr(json.loads(secret["SecretString"])[key])
    except (ValueError, KeyError, TypeError):
        # Neither the text nor its parts may reach a message.
        raise SecretUnfit(
            "a secret has no such key", where=f"Secrets Manager, secret {name}", expected=f"JSON with {key}"
        ) from None


def _item_links(deployed: DeployedLake, lake: OpenLake) -> tuple[ItemLink, ...]:
    # The types of items are Spark's, and a machine that only verifies a lake has no Spark.
    from tributary.operations.reconcile.items import ItemLink

    sources: Sequence[Source] = deployed.lake.item_sources
    is_ingesting = bool(sources) and bool(read_stoppable(deployed.job_place))
    return tuple(
        ItemLink(
            lake=deployed.lake,
            source=source,
            dynamodb=deployed.session.boto.client(
                "dynamodb", region_name=stream.region_of_stream or deployed.session.region
            ),
            files=lake.files,
            silver=lake.silver,
            is_ingesting=is_ingesting,
        )
        for source in sources
        if (stream := source.item_stream) is not None
    )

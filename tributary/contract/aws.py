"""The `[aws]` part of the lake file: where on AWS a lake is built, how large, and what already exists.

This module checks the form of a name. `stacks.available_on_aws` asks botocore's own lists whether AWS knows
the name, such as an instance class or a service in a region.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import timedelta
from ipaddress import IPv4Network
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, model_validator

from tributary.contract.aws_analytics import DbtJob, QuickSight
from tributary.contract.aws_items import OwnItems
from tributary.contract.aws_verify import VerifyJob
from tributary.contract.engines import mysql, postgres, sqlserver
from tributary.contract.engines.mysql import AuroraMySql
from tributary.contract.engines.postgres import AuroraPostgres, PostgresAlarms
from tributary.contract.engines.registry import read_existing
from tributary.contract.engines.sqlserver import RdsSqlServer
from tributary.contract.entries import (
    Duration,
    Entry,
    KeyArn,
    Names,
    as_tuple,
    expecting,
    matching,
    without_repetition,
)
from tributary.contract.source import ExistingDatabase

Profile = Literal["small", "production"]
OnDestroy = Literal["retain", "delete"]
KafkaKind = Literal["provisioned", "serverless"]
Monitoring = Literal["DEFAULT", "PER_BROKER", "PER_TOPIC_PER_BROKER", "PER_TOPIC_PER_PARTITION"]


def _identifier(prefix: str, of: str) -> AfterValidator:
    return matching(rf"{prefix}-[0-9a-f]{{8,17}}", f'the id of {of}, such as "{prefix}-0123456789abcdef0"')


Region = Annotated[str, matching(r"[a-z]{2}(-[a-z]+)+-[1-9]", 'a region, such as "eu-west-1"')]
Account = Annotated[str, matching(r"[0-9]{12}", "an account's 12 digits, in quotes")]
Email = Annotated[str, matching(r"[^@\s]+@[^@\s]+\.[^@\s]+", "an e-mail address")]
VpcId = Annotated[str, _identifier("vpc", "a VPC")]
SubnetId = Annotated[str, _identifier("subnet", "a subnet")]
SecurityGroupId = Annotated[str, _identifier("sg", "a security group")]
ClusterArn = Annotated[
    str,
    matching(
        # The id of a serverless cluster ends in -s1, for example.
        r"arn:aws[a-z-]*:kafka:[a-z0-9-]+:[0-9]{12}:cluster/[^/]+/[0-9a-f-]+-s?[0-9]+",
        "the ARN of an MSK cluster",
    ),
]
BootstrapServers = Annotated[
    str,
    matching(
        r"[A-Za-z0-9.-]+:[0-9]+(,[A-Za-z0-9.-]+:[0-9]+)*",
        'addresses such as "b-1.shop.abc.c2.kafka.eu-west-1.amazonaws.com:9098"',
    ),
]
Qualifier = Annotated[str, matching(r"[a-z0-9]{1,10}", "up to 10 small letters and digits")]
PolicyName = Annotated[
    str, matching(r"[\w+=,.@/-]{1,128}", "the name of an IAM policy in the account, not its ARN")
]
PrincipalArn = Annotated[
    str,
    matching(r"arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/.+", "the ARN of an IAM role or user"),
]


def _network(text: str) -> str:
    try:
        IPv4Network(text)
    except ValueError:
        raise expecting('a network\'s addresses, such as "10.42.0.0/16"') from None
    return text


Cidr = Annotated[str, AfterValidator(_network)]
OwnCidr = Annotated[
    Cidr, matching(r"10\..*/16", 'a network of 65,536 addresses that begin with 10, such as "10.42.0.0/16"')
]
ZoneId = Annotated[
    str, matching(r"[a-z]+[1-9]-az[1-9][0-9]?", 'the id of an availability zone, such as "euw1-az1"')
]
Zones = Annotated[tuple[ZoneId, ...], BeforeValidator(as_tuple), AfterValidator(without_repetition)]
InstanceType = Annotated[
    str, matching(r"[a-z0-9-]+\.[a-z0-9-]+", 'an EC2 instance type, such as "m7g.xlarge"')
]
BrokerType = Annotated[
    str,
    matching(r"(kafka|express)\.[a-z0-9]+\.[a-z0-9]+", 'an MSK broker type, such as "kafka.m7g.large"'),
]
KafkaVersion = Annotated[
    str,
    # CloudFormation can declare topics only from 3.6 on.
    matching(
        r"(3\.([6-9]|[1-9][0-9])|4\.[0-9]{1,2})\.(x|[0-9]{1,2})(\.kraft)?",
        'a version of Kafka on MSK, 3.6 or later, such as "3.9.x.kraft"',
    ),
]
Release = Annotated[
    str, matching(r"emr-7\.[0-9]{1,2}\.[0-9]{1,2}", 'a release of EMR 7, such as "emr-7.13.0"')
]
Existing = Annotated[ExistingDatabase, PlainValidator(read_existing)]
LOG_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1827)
"""The days for which CloudWatch Logs can keep events, up to ten years (API reference, PutRetentionPolicy)."""


def _whole_days(duration: timedelta) -> timedelta:
    if duration % timedelta(days=1):
        raise expecting('whole days, written "90d"')
    return duration


def _log_days(duration: timedelta) -> timedelta:
    if duration not in map(timedelta, LOG_DAYS):
        raise expecting(
            f"one of the spans that CloudWatch offers: {', '.join(f'{days}d' for days in LOG_DAYS)}"
        )
    return duration


def _user_tags(tags: dict[str, str]) -> dict[str, str]:
    if len(tags) > _MOST_TAGS:
        raise expecting(f"{_MOST_TAGS} tags at most")
    for key, value in tags.items():
        if not 0 < len(key) <= 128 or len(value) > 256:
            raise expecting("keys of 1 to 128 characters and values of at most 256")
        if key.lower().startswith(("aws:", "tributary:")):
            raise expecting("keys that do not begin with aws: or tributary:, which are taken")
        for text in (key, value):
            if not all(map(_is_in_tags, text)):
                raise expecting(f"letters, digits, blanks and _ . : / = + - @ in keys and values, not {text}")
    return tags


def _is_in_tags(character: str) -> bool:
    """Tell whether a tag may have the character: IAM API reference, "Tag", the narrowest of all services."""
    return character in "_.:/=+-@" or unicodedata.category(character)[0] in "LZN"


_MOST_TAGS = 40
"""AWS takes 50 on a resource. The lake, the CDK and EMR add some."""

UserTags = Annotated[dict[str, str], AfterValidator(_user_tags)]
Days = Annotated[Duration, AfterValidator(_whole_days)]
LogDays = Annotated[Duration, AfterValidator(_log_days)]
Sha256 = Annotated[str, matching(r"[0-9a-f]{64}", "a SHA-256 in 64 hexadecimal digits")]
ConnectorOptions = dict[str, str]


class Bootstrap(Entry):
    """How `cdk bootstrap` prepared the account and region, if it did so differently from its defaults.

    qualifier  part of the names of the CDK's own bucket and roles
    key        ARN of the account's own key that encrypts the CDK's bucket; None: it has no key of the account
    """

    qualifier: Qualifier = "hnb659fds"
    key: KeyArn | None = None


class ExistingVpc(Entry):
    """A VPC that already exists. The whole lake is in its private subnets, one in each availability zone.

    The subnets need a route to AWS's services, such as a NAT gateway.

    private_subnets, zones  two or three, in the same order; a zone is given by its id, as its name means
                            another zone in another account
    """

    id: VpcId
    private_subnets: Annotated[tuple[SubnetId, ...], BeforeValidator(as_tuple)]
    zones: Zones

    @model_validator(mode="after")
    def _one_subnet_a_zone(self) -> ExistingVpc:
        if not 2 <= len(set(self.private_subnets)) == len(self.zones) <= 3:
            raise expecting("two or three private subnets and the ids of as many zones, in the same order")
        return self


class Network(Entry):
    """The network that the lake is in.

    availability_zones   how many of them the lake's own VPC is in
    zones                the ids of those zones; None: zones that have all of the lake's services
    nat_gateways         at most one for each zone; 0 is allowed only with interface_endpoints
    interface_endpoints  private endpoints for Glue, STS, Secrets Manager, CloudWatch and KMS. S3's endpoint
                         is free and always exists
    admin_host           a small machine in a private subnet, for sessions of Systems Manager
    vpc                  an existing VPC. It is left unchanged, and the entries above have no effect. None:
                         the lake creates its own VPC
    """

    cidr: OwnCidr = "10.42.0.0/16"
    availability_zones: Annotated[int, Field(ge=2, le=3)] = 2
    zones: Zones | None = None
    nat_gateways: Annotated[int, Field(ge=0, le=3)] = 1
    interface_endpoints: bool = False
    flow_logs: bool = True
    admin_host: bool = False
    vpc: ExistingVpc | None = None

    @model_validator(mode="after")
    def _two_or_three_zones(self) -> Network:
        if self.zones is not None and not 2 <= len(self.zones) <= 3:
            raise expecting("zones = the ids of two or three availability zones")
        return self

    @model_validator(mode="after")
    def _some_way_out(self) -> Network:
        if self.vpc is None and self.nat_gateways == 0 and not self.interface_endpoints:
            raise expecting(
                "nat_gateways = 1 or more, or interface_endpoints = true: a route to AWS's services"
            )
        return self


SERVERLESS_MAX_EVENT_MB = 8
"""The largest `max.message.bytes`, in mebibytes (MSK developer guide, "Configuration properties")."""


class ExistingCluster(Entry):
    """An Amazon MSK cluster that exists already. It must let clients log in with IAM.

    bootstrap_servers  of the IAM listener, comma-separated host:port
    security_group     of the brokers; the lake adds rules that let its own clients in
    """

    arn: ClusterArn
    bootstrap_servers: BootstrapServers
    security_group: SecurityGroupId

    @property
    def name(self) -> str:
        return self.arn.split("/")[1]

    @property
    def kind(self) -> KafkaKind:
        """The kind of the cluster, by its id."""
        return "serverless" if "-s" in self.uuid else "provisioned"

    @property
    def ports(self) -> frozenset[int]:
        """The brokers' ports; IAM's is 9098."""
        return frozenset(int(server.rpartition(":")[2]) for server in self.bootstrap_servers.split(","))

    @property
    def uuid(self) -> str:
        """The id at the end of the ARN, by which MSK tells clusters with the same name apart."""
        return self.arn.split("/")[2]


class Kafka(Entry):
    """The Amazon MSK cluster.

    cluster         an existing one, of `kind`; None: the lake's own, with the settings below
    brokers         a multiple of the availability zones; None: one for each zone
    storage_gb      of a broker at first; storage_max_gb is how far it may grow
    retention       how long a table's topic keeps its events; bronze keeps them forever
    min_insync      how many replicas must have an event
    open_monitoring expose the brokers' metrics to Prometheus, on ports 11001 and 11002
    """

    kind: KafkaKind = "provisioned"
    cluster: ExistingCluster | None = None
    version: KafkaVersion = "3.9.x.kraft"
    broker: BrokerType = "kafka.t3.small"
    brokers: Annotated[int, Field(ge=2, le=60)] | None = None
    storage_gb: Annotated[int, Field(ge=10, le=16384)] = 50
    storage_max_gb: Annotated[int, Field(ge=10, le=16384)] = 200
    monitoring: Monitoring = "PER_TOPIC_PER_BROKER"
    retention: Duration = timedelta(days=7)
    replication: Annotated[int, Field(ge=2, le=3)] = 2
    min_insync: Annotated[int, Field(ge=1, le=3)] = 1
    open_monitoring: bool = False

    @property
    def is_express(self) -> bool:
        """Tell whether the brokers themselves choose storage, replicas and the number in sync."""
        return self.kind == "provisioned" and self.broker.startswith("express.")


class OtherSink(Entry):
    """An S3 sink that the user chooses instead of the Iceberg sink. `--from files:` reads what it writes.

    plugin  path of its zip, from the lake file's folder
    sha256  of that zip
    config  all its options except name and topics. In their values, {bucket} stands for the bronze bucket's
            name and {region} for the region
    """

    plugin: Annotated[str, Field(min_length=1)]
    sha256: Sha256
    config: ConnectorOptions

    @model_validator(mode="after")
    def _a_connector_without_name_and_topics(self) -> OtherSink:
        if "connector.class" not in self.config:
            raise expecting('config with "connector.class" = "…"')
        if given := {"name", "topics", "topics.regex"} & self.config.keys():
            raise expecting(f"config without {' and '.join(sorted(given))}, which follow from the lake")
        return self


class Connect(Entry):
    """Amazon MSK Connect. An MCU is one vCPU and 4 GiB of memory.

    debezium_mcus     of the one worker that each source has
    sink_workers_max  the sink has at least one worker
    running           false removes the connectors but keeps their offsets. To deploy a new plugin or version,
                      deploy with false and then with true
    rotation_days     after how many days the password of Debezium's user changes in each of the lake's own
                      databases, and the connector restarts; 0: never
    """

    version: Literal["3.7.x"] = "3.7.x"
    debezium_mcus: Literal[1, 2, 4, 8] = 1
    sink_mcus: Literal[1, 2, 4, 8] = 1
    sink_workers_max: Annotated[int, Field(ge=1, le=10)] = 2
    running: bool = True
    rotation_days: Annotated[int, Field(ge=0, le=365)] = 0
    sink: OtherSink | None = None


class Storage(Entry):
    """Buckets, their encryption, and who may read the data in them.

    bronze_cold_after  when bronze files move to a cheaper storage class
    scan_limit_gb      of one query in Athena
    readers            who gets SELECT on the silver tables through Lake Formation; none: IAM alone decides
    lake_formation     whether the sink and the Spark app need permissions of Lake Formation, because the
                       account does not leave new databases to IAM alone
    """

    encryption: Literal["kms", "s3"] = "s3"
    bronze_cold_after: Days = timedelta(days=90)
    logs_kept: LogDays = timedelta(days=90)
    scan_limit_gb: Annotated[int, Field(ge=1, le=100_000)] = 100
    readers: Annotated[tuple[PrincipalArn, ...], BeforeValidator(as_tuple)] = ()
    lake_formation: bool = False


class Processing(Entry):
    """The EMR cluster or application that runs the Spark app.

    on           an EMR cluster on EC2, or EMR Serverless
    groups       "fleets" lets EMR choose among several instance types, and use Spot if `spot` is true
    architecture  of the processors; the instance types must have it, and the wheels are fetched for it
    primary      the instance that starts jobs but runs no tasks
    core         instances that always run; on EMR Serverless, workers that wait for a job, each with 2
                 vCPUs and 8 GB, in addition to one for the driver
    task         the types of the instances that come and go; an instance group takes the first type
    units_max    how far managed scaling may go: in instances without the primary one, or in workers
    spot         all instances above `core_count` are Spot instances
    restarts     how many deaths of a follow job within an hour are followed by a new start; 0: none is
    tls          between the nodes of a cluster, with a certificate for the names that Amazon's DNS gives
                 them. Set it to false if an existing VPC gives other names: then Spark itself encrypts its
                 traffic
    studio       notebooks of EMR Studio, which can only read the silver tables
    """

    on: Literal["emr", "emr-serverless"] = "emr"
    release: Release = "emr-7.13.0"
    architecture: Literal["arm64", "x86_64"] = "arm64"
    groups: Literal["groups", "fleets"] = "groups"
    primary: InstanceType = "m7g.xlarge"
    core: InstanceType = "m7g.xlarge"
    core_count: Annotated[int, Field(ge=1, le=100)] = 1
    task: Names = ("m7g.xlarge", "m6g.xlarge")
    units_max: Annotated[int, Field(ge=1, le=1000)] = 2
    spot: bool = False
    restarts: Annotated[int, Field(ge=0, le=10)] = 3
    tls: bool = True
    studio: bool = False

    @model_validator(mode="after")
    def _room_for_all_that_is_always_there(self) -> Processing:
        always = self.core_count + (self.on == "emr-serverless")
        if self.units_max < always:
            raise expecting(f"units_max = {always} or more, because {always} always run")
        return self

    @model_validator(mode="after")
    def _instances_of_the_architecture(self) -> Processing:
        if self.on == "emr":
            for instance in (self.primary, self.core, *self.task):
                if ("arm64" if _is_graviton(instance) else "x86_64") != self.architecture:
                    raise expecting(
                        f'instance types of the architecture "{self.architecture}", which {instance} is not'
                    )
        return self


def _is_graviton(instance: str) -> bool:
    """Tell by the family's name: letters, generation, `g` (Amazon EC2 Instance Types, naming conventions)."""
    return re.match(r"(a1|[a-z]+[0-9]+g)", instance) is not None


class Alarms(PostgresAlarms):
    """The limits at which CloudWatch alarms.

    email         who gets the alarms; None: the topic has no subscriber until somebody adds one
    freshness     the oldest that a table's newest rows may be
    sink_lag      the number of events by which bronze may lag
    quarantined   the number of a table's events that may be set aside within five minutes
    budget        US dollars a month for everything with the lake's tag; None: no alarm
    """

    email: Email | None = None
    freshness: Duration = timedelta(minutes=5)
    sink_lag: Annotated[int, Field(ge=1)] = 100_000
    quarantined: Annotated[int, Field(ge=0)] = 0
    budget: Annotated[int, Field(ge=1)] | None = None


class Aws(Entry):
    """The whole `[aws]` part. The `profile` gives every value that the file leaves out.

    account       None: the account of the credentials that deploy it
    permissions_boundary  name of the IAM policy that limits every role of the lake; None: no limit
    tags          of every resource, beside the lake's own
    bootstrap     how `cdk bootstrap` prepared the account
    protected     whether AWS refuses to delete the stacks and the databases; to be set once everything is
                  deployed, because a failed deployment must be able to remove what it created
    on_destroy    "delete" also removes all data, if `delete_data_of` is the lake's name
    database      for the PostgreSQL sources without an existing database in `source`
    mysql         for the MySQL sources without one
    sqlserver     for the SQL Server sources without one
    source        existing databases, by the source's name
    items         the streams and tables that the lake creates for sources of items, by the source's name
    dbt           a dbt project that runs on a schedule; None: none does
    quicksight    dashboards from board files; None: there are none
    verify        a job that compares the lake with its databases; None: only commands do
    """

    region: Region
    account: Account | None = None
    profile: Profile = "small"
    protected: bool = False
    permissions_boundary: PolicyName | None = None
    tags: UserTags = Field(default_factory=dict)
    bootstrap: Bootstrap = Bootstrap()
    on_destroy: OnDestroy = "retain"
    delete_data_of: str | None = None
    network: Network = Network()
    database: AuroraPostgres = AuroraPostgres()
    mysql: AuroraMySql = AuroraMySql()
    sqlserver: RdsSqlServer = RdsSqlServer()
    source: dict[str, Annotated[ExistingDatabase, PlainValidator(read_existing)]] = Field(
        default_factory=dict
    )
    items: dict[str, OwnItems] = Field(default_factory=dict)
    kafka: Kafka = Kafka()
    connect: Connect = Connect()
    storage: Storage = Storage()
    processing: Processing = Processing()
    alarms: Alarms = Alarms()
    dbt: DbtJob | None = None
    quicksight: QuickSight | None = None
    verify: VerifyJob | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_profile(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        return _overlaid(_PROFILES.get(str(content.get("profile")), {}), content)

    @property
    def zone_ids(self) -> tuple[str, ...]:
        """Return the ids of the lake's availability zones, as far as the lake file names them."""
        return (self.network.zones or ()) if self.network.vpc is None else self.network.vpc.zones

    @property
    def zone_count(self) -> int:
        """Return how many availability zones the lake is in."""
        return len(self.zone_ids) or self.network.availability_zones

    @property
    def brokers(self) -> int:
        return self.kafka.brokers or self.zone_count

    @property
    def deletes_data(self) -> bool:
        """Tell whether destroying the stacks also removes buckets, databases and topics."""
        return self.on_destroy == "delete"


_PRODUCTION: Mapping[str, Any] = {
    "network": {"availability_zones": 3, "nat_gateways": 3, "interface_endpoints": True},
    "database": postgres.PRODUCTION,
    "mysql": mysql.PRODUCTION,
    "sqlserver": sqlserver.PRODUCTION,
    "kafka": {
        "broker": "kafka.m7g.large",
        "storage_gb": 250,
        "storage_max_gb": 2000,
        "replication": 3,
        "min_insync": 2,
    },
    "connect": {"debezium_mcus": 2, "sink_mcus": 2, "sink_workers_max": 4, "rotation_days": 30},
    "storage": {"encryption": "kms"},
    "processing": {
        "core": "r7g.2xlarge",
        "core_count": 2,
        "units_max": 8,
        "groups": "fleets",
        "spot": True,
        "task": ["r7g.2xlarge", "r6g.2xlarge", "m7g.2xlarge"],
    },
}
_PROFILES: Mapping[str, Mapping[str, Any]] = {"production": _PRODUCTION}
"""The values of each profile that differ from the defaults. The defaults are the profile "small"."""


def _overlaid(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return `above` plus what only `below` sets, section by section. An existing VPC brings its zones."""
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        merged[name] = (
            _overlaid(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
        )
    return merged

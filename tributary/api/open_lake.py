"""Open a lake to read it: the local lake of a state folder, or the lake that is deployed on AWS."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from spark_app.schema_registry.opened import open_registry
from tributary.api.event_payloads import EventPayloads
from tributary.api.lake_files import AwsFiles, LakeFiles, LocalFiles, told_unreadable
from tributary.api.last_commits import LastCommits
from tributary.api.query_apart import query_apart
from tributary.api.row_events import RowEvent, count_events, parse_key, read_row_events
from tributary.api.rows import read_schema
from tributary.api.sql import Limits, query_tables
from tributary.api.table import Table
from tributary.api.tables import LakeTable, find_silver_table, read_table_folders, with_commit
from tributary.api.time_travel import instant_of
from tributary.api.timeline import Commit
from tributary.contract.aws_names import AwsNames, Output
from tributary.contract.lake import Deletes, Lake, Storage, read_lake
from tributary.contract.table_name import TableName
from tributary.local.running import read_running_settings
from tributary.local.schema_registry import registry_of
from tributary.local.state import DEFAULT_STATE_FOLDER, StateFolder

if TYPE_CHECKING:
    import pyarrow as pa

    from tributary.aws.session import AwsSession

_READERS = 8


@dataclass(frozen=True)
class TableSummary:
    """A short description of a lake's table.

    table         the table itself, to read
    storage       how Hudi stores it
    deletes       hard: deleted rows are gone; soft: their last values stay, with `_deleted`
    last_commit   the latest commit that applied events, or None
    last_instant  the last instant of its timeline, of whatever kind. As long as it stays, so do the rows
    """

    table: Table
    storage: Storage
    deletes: Deletes
    last_commit: Commit | None
    last_instant: str

    @property
    def name(self) -> TableName:
        """Source, schema and table."""
        return self.table.name

    @property
    def uri(self) -> str:
        """The address of the files, such as s3://shop-silver/web/public/orders."""
        return self.table.uri


@dataclass(frozen=True)
class OpenLake:
    """A lake to read. Each call reads the latest commits.

    lake        the content of the lake file
    silver      the bucket of the tables, with a prefix if there is one
    quarantine  the bucket of events that could not be applied, with a prefix if there is one
    bronze      the bucket of all events, with a prefix if there is one
    payloads    reads the events in bronze
    """

    lake: Lake
    silver: str
    quarantine: str
    bronze: str
    files: LakeFiles = field(repr=False)
    payloads: EventPayloads = field(default_factory=EventPayloads, repr=False)

    def tables(self, commits: LastCommits | None = None) -> tuple[TableSummary, ...]:
        """Return the tables that have a commit, sorted by name. Raises LakeUnreadable.

        commits  what an earlier call has kept, to read only the commits that are new
        """
        known = LastCommits() if commits is None else commits
        with told_unreadable(f"s3://{self.silver}"), ThreadPoolExecutor(_READERS) as pool:
            folders = self._folders()
            known.keep_only([place.path for place in folders])
            return tuple(filter(None, pool.map(lambda one: self._summary(one, known), folders)))

    def names(self) -> tuple[TableName, ...]:
        """Return the names of the tables that have a commit. Raises LakeUnreadable."""
        with told_unreadable(f"s3://{self.silver}"):
            return tuple(place.name for place in self._places())

    def table(self, name: str) -> Table:
        """Return the table with the name `source.schema.table`, `schema.table` or `table`.

        Raises UnknownTable and LakeUnreadable.
        """
        with told_unreadable(f"s3://{self.silver}"):
            place = find_silver_table(self.files.filesystem, self.lake.names, self.silver, name)
            return self._table(place)

    def sql(self, query: str, as_of: str | datetime | None = None, limits: Limits | None = None) -> pa.Table:
        """Return DuckDB's result of a statement over the tables, as they are or as they were at a time.

        With limits, the statement runs in another process, and can neither read files nor reach the network.

        The statement can name a table as `table`, `schema.table` or `source.schema.table`. Raises QueryError,
        UnknownTable, NotAMoment, OutOfHistory, ReadInSpark, UnreadableTable and LakeUnreadable.
        """
        instant = None if as_of is None else instant_of(as_of)
        with told_unreadable(f"s3://{self.silver}"):
            if limits is not None:
                return query_apart(self.files, self._folders(), query, instant, limits)
            return query_tables(self.files, self._folders(), query, instant)

    def schemas(self) -> Mapping[TableName, pa.Schema]:
        """Return the columns of every table, without Hudi's. Raises UnreadableTable and LakeUnreadable."""
        with told_unreadable(f"s3://{self.silver}"), ThreadPoolExecutor(_READERS) as pool:
            places = self._places()
            found = pool.map(lambda place: read_schema(self.files, place), places)
            return {place.name: schema for place, schema in zip(places, found, strict=True)}

    def row_events(self, name: str, key: str) -> tuple[RowEvent, ...]:
        """Return every event of a row in bronze, by its table's name and its key, oldest first.

        The key is a value, such as `7`, or columns, such as `order=7,line=2`. Raises UnknownTable, NotAKey
        LakeUnreadable, and SchemasMissing or RegistryRefused about the schemas of Avro events.
        """
        table = self.table(name).name
        source = self.lake.source(table.source)
        topic = self.lake.source_names(source).topic(table.schema, table.table)
        namespace = self.lake.names.bronze_namespace
        with told_unreadable(f"s3://{self.bronze}"):
            if source.item_stream is not None:
                from tributary.api.item_events import read_item_events  # It takes PySpark's types.

                records = f"{namespace}/{self.lake.names.records_table(source.name)}"
                return read_item_events(self.files.filesystem, self.bronze, records, topic, parse_key(key))
            return read_row_events(
                self.files.filesystem, self.bronze, namespace, topic, parse_key(key), self.payloads
            )

    def count_events(self, name: str, keys: Collection[Mapping[str, str]]) -> int:
        """Return how many events of these keys the files of bronze have, by the table's name.

        A key has a text for each of its columns. Raises what `row_events` raises."""
        table = self.table(name).name
        source = self.lake.source(table.source)
        names, namespace = self.lake.source_names(source), self.lake.names.bronze_namespace
        topic = names.topic(table.schema, table.table)
        with told_unreadable(f"s3://{self.bronze}"):
            if source.item_stream is not None:
                from spark_app.wire.items.wanted_keys import WantedKeys  # It takes PySpark's types.
                from tributary.api.item_events import count_item_events

                records = f"{namespace}/{self.lake.names.records_table(source.name)}"
                # Damaged records without the name of a table are in a topic of their own.
                topics, wanted = (topic, names.topic_prefix), WantedKeys(tuple(keys), table.table)
                return count_item_events(self.files.filesystem, self.bronze, records, topics, wanted)
            return count_events(self.files.filesystem, self.bronze, namespace, topic, keys, self.payloads)

    def _places(self) -> tuple[LakeTable, ...]:
        return with_commit(self.files.filesystem, self._folders())

    def _folders(self) -> tuple[LakeTable, ...]:
        return read_table_folders(self.files.filesystem, self.lake.names, self.silver)

    def _table(self, place: LakeTable) -> Table:
        quarantine_path = f"{self.quarantine}/{self.lake.names.table_path(place.name)}"
        return Table(place.name, f"s3://{place.path}", self.files, quarantine_path)

    def _summary(self, place: LakeTable, commits: LastCommits) -> TableSummary | None:
        found = commits.read(self.files.filesystem, place.path)
        if found is None:
            return None
        policy = self.lake.policy(place.name)
        return TableSummary(self._table(place), policy.storage, policy.deletes, found.commit, found.instant)


def open_lake(
    lake_file: Path | str = "lake.toml",
    *,
    state: Path | str = DEFAULT_STATE_FOLDER,
    aws: bool = False,
    environment: str | None = None,
) -> OpenLake:
    """Open the lake that the lake file describes.

    state  the state folder of the local pipeline, whose S3 server must run
    aws    open the deployed lake in the region of the lake file; `state` then has no effect. Credentials are
           found in the same way as by the AWS command line
    environment  the environment on AWS, with a file of its own beside the lake file

    Raises LakeFileError; PipelineDown for a local lake; AwsError and NotDeployed for one on AWS.
    """
    lake = read_lake(lake_file, environment)
    return _open_on_aws(lake, Path(lake_file)) if aws else open_local(lake, StateFolder(Path(state)))


def open_local(lake: Lake, state: StateFolder) -> OpenLake:
    """Open the lake of a state folder. Raises PipelineDown if its S3 server is not running."""
    settings = read_running_settings(state, "s3")
    secrets = settings.secrets
    files = LocalFiles(
        settings.s3_endpoint,
        secrets.s3_access_key.get_secret_value(),
        secrets.s3_secret_key.get_secret_value(),
    )
    names = lake.names
    payloads = EventPayloads(registry_of(lake, settings))
    return OpenLake(lake, names.silver_bucket, names.quarantine_bucket, names.bronze_bucket, files, payloads)


def _open_on_aws(lake: Lake, lake_file: Path) -> OpenLake:
    from tributary.aws.session import aws_session

    with aws_session(lake, lake_file) as session:
        return open_deployed(lake, session)


def open_deployed(lake: Lake, session: AwsSession) -> OpenLake:
    """Open a deployed lake. Raises NotDeployed, and boto3's errors."""
    from tributary.aws.stack_outputs import StackOutputs

    outputs = StackOutputs(session, AwsNames(lake.name))
    silver, quarantine, bronze = (
        outputs.get("lake", output).removeprefix("s3://").rstrip("/")
        for output in (Output.SILVER, Output.QUARANTINE, Output.BRONZE)
    )
    files = AwsFiles(session.region, session.read_credentials, session.s3_endpoint)
    region = None if lake.registry is None else lake.registry.region
    glue = session.boto.client("glue", region_name=region)
    payloads = EventPayloads(open_registry(lake.registry, glue=glue))
    return OpenLake(lake, silver, quarantine, bronze, files, payloads)

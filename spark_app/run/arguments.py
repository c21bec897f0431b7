"""The app's arguments, as spark-submit passes them on."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spark_app.sources.kafka import MSK_IAM
from tributary.contract.table_name import TableName

FILES = "files:"


@dataclass(frozen=True)
class Arguments:
    """What the app shall do, and where everything is. A URI of a bucket or folder has no slash at its end.

    events_from     "kafka", "bronze", or "files:" and the URI of a folder
    allows_gaps     whether offsets that are in no file, or records that a stream has deleted, are passed over
    kafka           the bootstrap servers
    kafka_client    the properties of the Kafka clients
    has_msk_iam     whether the app logs in to Amazon MSK as the role that runs it
    bronze_table    the full name of the Iceberg table of events; None: the lake's own name
    apicurio        the address of an Apicurio in place of the registry in the lake file
    named           the only tables to work on; empty: all tables of the lake

    The others belong to single commands, and have their defaults for the rest.
    """

    command: str
    lake: Path
    events_from: str
    allows_gaps: bool
    kafka: str | None
    kafka_client: Mapping[str, str]
    has_msk_iam: bool
    metrics_log_group: str | None
    bronze_table: str | None
    silver: str
    quarantine: str
    has_pinned_jars: bool
    glue_endpoint: str | None
    apicurio: str | None
    named: frozenset[TableName]
    follow: bool = False
    awaits_checks: bool = False
    glue_database: str | None = None
    since_snapshot: bool = False
    keys: str = ""
    report: str | None = None
    derived: frozenset[str] = field(default_factory=frozenset)
    topics: tuple[str, ...] = ()
    release: str = ""

    @property
    def is_following_ingest(self) -> bool:
        """Tell whether the run is an ingest that runs until somebody stops it."""
        return self.command == "ingest" and self.follow


def parse_arguments(texts: Sequence[str] | None = None) -> Arguments:
    """Parse the arguments, by default what the process was started with.

    Wrong arguments end the process with status 2. Raises NotATableName."""
    found = vars(_parser().parse_args(texts))
    found["kafka_client"] = {**(MSK_IAM if found["has_msk_iam"] else {}), **dict(found.pop("kafka_options"))}
    found["named"] = frozenset(map(TableName.parse, found["named"]))
    for name, kind in (("derived", frozenset), ("topics", tuple)):
        found[name] = kind(found.get(name, ()))
    for name in ("silver", "quarantine"):
        found[name] = found[name].rstrip("/")
    return Arguments(**found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="main.py", description="Tributary's Spark application")
    commands = parser.add_subparsers(dest="command", required=True)
    ingest = commands.add_parser("ingest", help="bring the tables up to date with the source")
    _add_common(ingest, default_source="kafka")
    ingest.add_argument("--follow", action="store_true", help="keep running until stopped")
    ingest.add_argument(
        "--await-checks",
        dest="awaits_checks",
        action="store_true",
        help="make a new table only after a look at its source's catalog has found nothing against it",
    )
    ingest.add_argument(
        "--glue-database", metavar="NAME", help="show the tables in this database of the Glue catalog"
    )
    replay = commands.add_parser("replay", help="apply the quarantined events that are readable now")
    _add_common(replay, default_source="bronze")
    rebuild = commands.add_parser("rebuild", help="rebuild tables from their events, each in one commit")
    _add_common(rebuild, default_source="bronze")
    rebuild.add_argument(
        "--since-snapshot", action="store_true", help="use only the last snapshot and the events after it"
    )
    new_epoch = commands.add_parser("new-epoch", help="continue at the start of topics that were recreated")
    _add_common(new_epoch, default_source="kafka")
    compact = commands.add_parser("compact", help="run the table services now; nothing else may write")
    _add_common(compact, default_source="kafka")
    erase = commands.add_parser("erase", help="forget keys of one table; nothing else may write")
    _add_common(erase, default_source="kafka")
    erase.add_argument(
        "--keys",
        required=True,
        metavar="URI",
        help='a file or an object with JSON such as [{"id": "7"}, {"id": "8"}]',
    )
    erase.add_argument(
        "--report", metavar="URI", help="write the reports there, and print nothing that may hold a key"
    )
    derive_tables = commands.add_parser("derive", help="bring the derived tables up to date")
    _add_common(derive_tables, default_source="kafka")
    derive_tables.add_argument("--follow", action="store_true", help="keep running until stopped")
    derive_tables.add_argument(
        "--glue-database", metavar="NAME", help="show the tables in this database of the Glue catalog"
    )
    derive_tables.add_argument(
        "--derived", action="append", default=[], metavar="NAME", help="only this derived table"
    )
    delete = commands.add_parser("delete-events", help="delete all events of topics from bronze")
    _add_common(delete, default_source="bronze")
    delete.add_argument("--topic", dest="topics", action="append", required=True, metavar="NAME")
    preflight = commands.add_parser("preflight", help="try all that the app needs, without touching a table")
    _add_common(preflight, default_source="kafka")
    preflight.add_argument(
        "--release", required=True, metavar="NAME", help="the release of EMR; the result is stored under it"
    )
    preflight.add_argument("--glue-database", metavar="NAME", help="list the tables of this Glue database")
    maintain = commands.add_parser("maintain", help="keep bronze small, while the sink keeps writing to it")
    _add_common(maintain, default_source="bronze")
    return parser


def _add_common(command: argparse.ArgumentParser, default_source: str) -> None:
    command.add_argument("--lake", type=Path, required=True, help="the lake file")
    command.add_argument(
        "--from",
        dest="events_from",
        metavar="kafka|bronze|files:URI",
        type=_events_from,
        default=default_source,
        help="where to read the events; files:URI is a folder that an S3 sink wrote",
    )
    command.add_argument(
        "--allow-gaps",
        dest="allows_gaps",
        action="store_true",
        help="with files: treat offsets that are in no file as offsets without an event; with a stream of "
        "items: continue after records that the stream has deleted",
    )
    command.add_argument("--kafka", metavar="HOST:PORT", help="bootstrap servers, for --from kafka")
    command.add_argument(
        "--kafka-option",
        dest="kafka_options",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=_name_and_value,
        help="a property of the Kafka clients, such as security.protocol=SASL_SSL",
    )
    command.add_argument(
        "--msk-iam",
        dest="has_msk_iam",
        action="store_true",
        help="log in to Amazon MSK as the IAM role that runs the app",
    )
    command.add_argument(
        "--metrics-log-group", metavar="NAME", help="send metrics to CloudWatch through this log group"
    )
    command.add_argument(
        "--bronze-table",
        help="the full name of the Iceberg table of events, for --from bronze and events Kafka has deleted",
    )
    command.add_argument(
        "--silver", required=True, metavar="URI", help="the bucket or folder of the Hudi tables"
    )
    command.add_argument(
        "--quarantine", required=True, metavar="URI", help="the bucket or folder of bad events"
    )
    command.add_argument(
        "--pinned-jars",
        dest="has_pinned_jars",
        action="store_true",
        help="the class path has exactly the jars for which the app's Java was compiled, so do not check it",
    )
    command.add_argument("--glue-endpoint", metavar="URL", help="the address of a Glue other than AWS's")
    command.add_argument(
        "--apicurio",
        metavar="URL",
        help="the address of an Apicurio in place of the registry in the lake file",
    )
    command.add_argument("--tables", dest="named", action="append", default=[], metavar="SOURCE.SCHEMA.TABLE")


def _events_from(text: str) -> str:
    if text not in ("kafka", "bronze") and not (text.startswith(FILES) and text != FILES):
        raise argparse.ArgumentTypeError(f"{text!r} is none of kafka, bronze and files:URI")
    return text


def _name_and_value(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value

"""The state folder: the files of each server, and the secrets and ports chosen for them."""

from __future__ import annotations

import fcntl
import hmac
import os
import random
import secrets
import socket
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import psutil
from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError, field_serializer

from tributary.contract.errors import TributaryError

DEFAULT_STATE_FOLDER = Path(".tributary")

# The range is below the ports for outgoing connections of Linux (from 32768) and macOS (from 49152). So no
# connection takes a server's port while the server is down.
_FREE_PORT_RANGE = range(20000, 32000)
_ATTEMPTS = 200


class PortInUse(TributaryError):
    """Another process uses a port that the lake file fixes, or there is no free port."""


class StateFolderBusy(TributaryError):
    """Another command is starting or stopping the servers of this state folder."""


class StateFolderUnfit(TributaryError):
    """The folder cannot be used as a state folder, or belongs to another lake."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Ports(_Value):
    """The loopback port of every server."""

    postgres: int
    kafka: int
    kafka_controller: int
    connect: int
    s3: int
    mariadb: int | None = None
    apicurio: int | None = None
    apicurio_management: int | None = None
    dynamodb: int | None = None
    kinesis: int | None = None
    """None of the last five: the folder was last used before there was such a server."""


class Secrets(_Value):
    """The secrets of a state folder, generated once. They contain only letters and digits."""

    postgres_admin: SecretStr
    replication: SecretStr
    catalog: SecretStr
    s3_access_key: SecretStr
    s3_secret_key: SecretStr

    def replication_password(self, source: str) -> SecretStr:
        """Return a source's password. Each source has its own, so no database learns another's password."""
        key = self.replication.get_secret_value().encode()
        return SecretStr(hmac.digest(key, source.encode(), "sha256").hex())

    @property
    def hash_salt(self) -> SecretStr:
        """The salt of hashed columns. All sources share it, so that their hashes can be joined."""
        key = self.replication.get_secret_value().encode()
        return SecretStr(hmac.digest(key, b"salt of hashed columns", "sha256").hex())

    @property
    def mariadb_admin(self) -> SecretStr:
        key = self.replication.get_secret_value().encode()
        return SecretStr(hmac.digest(key, b"administrator of MariaDB", "sha256").hex())

    def all_of(self, sources: Iterable[str]) -> Iterator[SecretStr]:
        """Yield every secret of the folder, also those that are derived, for these sources."""
        yield from (getattr(self, name) for name in type(self).model_fields)
        yield from (self.hash_salt, self.mariadb_admin)
        yield from map(self.replication_password, sources)

    @field_serializer("*", when_used="json")
    def _reveal_in_the_settings_file(self, value: SecretStr) -> str:
        return value.get_secret_value()


class LocalSettings(_Value):
    """The choices for a state folder: secrets and ids from its creation, and ports from the last `up`."""

    lake: str
    kafka_cluster_id: str
    ports: Ports
    secrets: Secrets

    @property
    def kafka_bootstrap(self) -> str:
        return f"127.0.0.1:{self.ports.kafka}"

    @property
    def connect_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.connect}"

    @property
    def apicurio_address(self) -> str:
        return f"http://127.0.0.1:{self.ports.apicurio}"

    @property
    def s3_endpoint(self) -> str:
        return f"http://127.0.0.1:{self.ports.s3}"

    @property
    def dynamodb_endpoint(self) -> str:
        return f"http://127.0.0.1:{self.ports.dynamodb}"

    @property
    def kinesis_endpoint(self) -> str:
        return f"http://127.0.0.1:{self.ports.kinesis}"


class StateFolder:
    """The paths in a state folder. Each server owns one folder and one log."""

    def __init__(self, path: Path = DEFAULT_STATE_FOLDER) -> None:
        self.path = path.absolute()
        self.postgres = self.path / "postgres"
        self.mariadb = self.path / "mariadb"
        self.kafka = self.path / "kafka"
        self.s3 = self.path / "s3"
        self.apicurio = self.path / "apicurio"
        self.dynamodb = self.path / "dynamodb"
        self.kinesis = self.path / "kinesis"
        self.connect = self.path / "connect"
        self.spark = self.path / "spark"
        self.logs = self.path / "logs"
        self.run = self.path / "run"
        self.settings_file = self.path / "settings.json"
        self.left_out_file = self.path / "left-out.json"

    def create(self) -> None:
        """Create the folders, which only their owner can read. Raise StateFolderUnfit if that fails."""
        try:
            for folder in (self.path, self.kafka, self.s3, self.connect, self.spark, self.logs, self.run):
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(0o700)
        except OSError as error:
            raise StateFolderUnfit(
                "the state folder cannot be created",
                where=str(self.path),
                found=str(error),
                expected="a folder on a local file system that you own",
                remedy="Name another one with --state",
            ) from error

    def log(self, service: str) -> Path:
        return self.logs / f"{service}.log"

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock for starting and stopping servers. Raise StateFolderBusy if it is taken."""
        with (self.path / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise StateFolderBusy(
                    "another tributary command is starting or stopping the servers of this state folder",
                    where=str(self.path),
                    remedy="Wait for it to end, or name another folder with --state",
                ) from error
            yield

    def read_settings(self) -> LocalSettings | None:
        """Read the settings, or return None if nothing was ever started.

        Raises StateFolderUnfit if the file is damaged.
        """
        try:
            return LocalSettings.model_validate_json(self.settings_file.read_text())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            problem = error.errors(include_input=False)[0]
            raise StateFolderUnfit(
                "the settings of the state folder are damaged",
                where=str(self.settings_file),
                found=f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}",
                remedy="Restore the file, or start from scratch with another folder (--state)",
            ) from error

    def write_settings(self, settings: LocalSettings) -> None:
        draft = self.settings_file.with_suffix(".draft")
        write_private_file(draft, settings.model_dump_json(indent=2))
        draft.replace(self.settings_file)


def choose_settings(
    state: StateFolder, lake: str, fixed_ports: Mapping[str, int], running: frozenset[str]
) -> LocalSettings:
    """Return the settings to start with, but do not write them.

    A new state folder gets new secrets. Each port is the fixed one, or else the last one, or else a free one.
    A server in `running` keeps its port. Raises PortInUse and StateFolderUnfit.
    """
    last = state.read_settings()
    if last is not None and last.lake != lake:
        raise StateFolderUnfit(
            "this state folder belongs to another lake",
            where=str(state.path),
            found=last.lake,
            expected=lake,
            remedy="Name another folder with --state",
        )
    ports = choose_ports(fixed_ports, last.ports if last else None, running)
    if last is not None:
        return last.model_copy(update={"ports": ports})
    return LocalSettings(lake=lake, kafka_cluster_id=_kafka_uuid(), ports=ports, secrets=_new_secrets())


def choose_ports(fixed: Mapping[str, int], last: Ports | None, running: frozenset[str]) -> Ports:
    """Choose a port for every server. Raise PortInUse if another process uses a fixed port."""
    chosen: dict[str, int] = {}
    for name in Ports.model_fields:
        previous = getattr(last, name) if last else None
        taken = {*chosen.values(), *fixed.values()}
        service = name.removesuffix("_controller").removesuffix("_management")
        if service in running and previous is not None:
            chosen[name] = _require_unchanged(name, fixed.get(name, previous), previous)
        elif name in fixed:
            chosen[name] = _require_free(name, fixed[name])
        elif previous is not None and previous not in taken and is_free(previous):
            chosen[name] = previous
        else:
            chosen[name] = _find_free(taken)
    return Ports(**chosen)


def write_private_file(path: Path, text: str) -> None:
    """Write a file that nobody but its owner can read at any moment."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def _require_unchanged(name: str, wanted: int, running_on: int) -> int:
    if wanted == running_on:
        return wanted
    raise PortInUse(
        f"{name} is running on a different port than the lake file fixes",
        where=f"[local].{name}_port",
        found=str(running_on),
        expected=str(wanted),
        remedy="Run `tributary down` first",
    )


def _require_free(name: str, port: int) -> int:
    if is_free(port):
        return port
    raise PortInUse(
        f"port {port} for {name} is in use",
        where=f"[local].{name}_port",
        found=_describe_listener(port),
        expected="a free port on 127.0.0.1",
        remedy="Stop that process, or remove the entry so that a free port is chosen",
    )


def is_free(port: int) -> bool:
    """Tell whether no process listens on this port of 127.0.0.1."""
    return why_taken(port, "127.0.0.1") is None


def why_taken(port: int, address: str) -> OSError | None:
    """Return why no server can listen on this port of an address of this machine, or None if one can."""
    try:
        family, kind, _, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            # As for the servers themselves, a port with only old connections (TIME_WAIT) counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        return error
    return None


def _find_free(taken: set[int]) -> int:
    for _ in range(_ATTEMPTS):
        port = random.choice(_FREE_PORT_RANGE)
        if port not in taken and is_free(port):
            return port
    raise PortInUse(
        "no port is free",
        found=f"{_ATTEMPTS} random ports between {_FREE_PORT_RANGE.start} and {_FREE_PORT_RANGE.stop} in use",
        remedy="Fix free ports in [local] of the lake file",
    )


def _describe_listener(port: int) -> str:
    try:
        owners = [
            connection.pid
            for connection in psutil.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
        ]
    except psutil.AccessDenied:
        owners = []
    for pid in owners:
        if pid is not None:
            with suppress(psutil.NoSuchProcess):
                return f"{psutil.Process(pid).name()} (pid {pid})"
    return "a process of another user"


def _new_secrets() -> Secrets:
    return Secrets(
        postgres_admin=SecretStr(secrets.token_hex(16)),
        replication=SecretStr(secrets.token_hex(16)),
        catalog=SecretStr(secrets.token_hex(16)),
        s3_access_key=SecretStr(secrets.token_hex(10)),
        s3_secret_key=SecretStr(secrets.token_hex(20)),
    )


def _kafka_uuid() -> str:
    # Kafka's Uuid is 16 bytes in URL-safe base64 without padding. A leading "-" would look like an option.
    while True:
        text = urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text

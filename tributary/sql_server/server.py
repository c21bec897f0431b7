"""Listen for clients of MySQL's protocol, on this machine only."""

from __future__ import annotations

import asyncio
import configparser
import io
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from mysql_mimic import IdentityProvider, MysqlServer, NativePasswordAuthPlugin, User

from tributary.local.state import write_private_file
from tributary.sql_server.session import LakeSession, ServedLake

HOST = "127.0.0.1"
USER = "lake"


@dataclass(frozen=True)
class Access:
    """The port, and the password of the one user."""

    port: int
    password: str = field(repr=False)


class OneUser(IdentityProvider):  # type: ignore[misc]
    """Only the user `lake`, with the password, may connect."""

    def __init__(self, access: Access) -> None:
        self._digest = NativePasswordAuthPlugin.create_auth_string(access.password)

    async def get_user(self, username: str) -> User | None:
        if username != USER:
            return None
        return User(USER, auth_string=self._digest, auth_plugin=NativePasswordAuthPlugin.name)


def open_access(options: Path, port: int) -> Access:
    """Return the access for clients, and write it to the file of options, which MySQL's clients read.

    A password that the file has already stays, so that other programs can store it.
    """
    known = configparser.ConfigParser(interpolation=None)
    with suppress(FileNotFoundError, configparser.Error):
        known.read_string(options.read_text())
    password = known.get("client", "password", fallback="") or secrets.token_hex(16)
    options.parent.mkdir(parents=True, exist_ok=True)
    write_private_file(options, _as_options(Access(port, password)))
    return Access(port, password)


def serve(served: ServedLake, access: Access, on_start: Callable[[], None]) -> None:
    """Answer clients until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(served, access, on_start))


@contextmanager
def serving(served: ServedLake, access: Access) -> Iterator[None]:
    """Answer clients in a thread as long as the context lasts."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="sql-server", daemon=True)
    thread.start()
    try:
        server = asyncio.run_coroutine_threadsafe(listen(served, access), loop).result(30)
        try:
            yield
        finally:
            loop.call_soon_threadsafe(server.close)
            asyncio.run_coroutine_threadsafe(_end(), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end() -> None:
    """End the open connections."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _serve(served: ServedLake, access: Access, on_start: Callable[[], None]) -> None:
    server = await listen(served, access)
    on_start()
    await server.serve_forever()


async def listen(served: ServedLake, access: Access) -> MysqlServer:
    """Return a server that answers clients as long as the event loop runs."""
    server = MysqlServer(lambda: LakeSession(served), identity_provider=OneUser(access))
    await server.start_server(host=HOST, port=access.port)
    return server


def _as_options(access: Access) -> str:
    file = configparser.ConfigParser(interpolation=None)
    file["client"] = {"host": HOST, "port": str(access.port), "user": USER, "password": access.password}
    text = io.StringIO()
    file.write(text, space_around_delimiters=False)
    return text.getvalue()

"""A server that answers as AWS does, for tests whose clients are other processes or need real answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer


@contextmanager
def running_moto() -> Iterator[str]:
    """Yield the address of moto on a free port of loopback."""
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    try:
        yield "http://{}:{}".format(*moto.get_host_and_port())
    finally:
        moto.stop()

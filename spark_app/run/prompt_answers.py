"""Let the JVM's long answers arrive at once.

Py4J writes an answer in pieces of 8 KB. The JVM's socket holds each next piece back until the one before is
acknowledged (Nagle's algorithm). Linux delays this acknowledgement by 40 ms, in the hope that it can go along
with data. So each listing of a long timeline, and each schema of a wide table, would take 40 ms more.
"""

from __future__ import annotations

import io
import socket
from typing import Any

from py4j.clientserver import JavaClient


def answer_promptly(context: Any) -> None:
    """Acknowledge the JVM's answers at once, in this thread and in all that call the JVM from now on.

    `context` is the SparkContext. Where the system has no such option, or PySpark shares connections between
    threads, nothing changes."""
    client = context._gateway._gateway_client
    if not isinstance(client, JavaClient) or not hasattr(socket, "TCP_QUICKACK"):
        return
    create = client._create_new_connection
    if isinstance(create, _PromptConnections):
        return
    client._create_new_connection = _PromptConnections(create)
    connection = client.get_thread_connection()
    if connection is not None:
        _acknowledge_at_once(connection)


class _PromptConnections:
    """Makes the connections of a client as `create` does, and lets them acknowledge at once."""

    def __init__(self, create: Any) -> None:
        self._create = create

    def __call__(self) -> Any:
        connection = self._create()
        _acknowledge_at_once(connection)
        return connection


def _acknowledge_at_once(connection: Any) -> None:
    """Replace the stream of a connection that awaits no answer, so that nothing is lost."""
    connection.stream = io.BufferedReader(_Acknowledging(connection.socket))


class _Acknowledging(io.RawIOBase):
    """Reads a socket. Linux forgets the option with each answer, so it is set before each read."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._source.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return self._source.recv_into(buffer)

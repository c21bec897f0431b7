"""Real servers on loopback that take alerts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from aiosmtpd.controller import Controller

from tests.ports import free_port


@contextmanager
def webhook(status: int = 200) -> Iterator[tuple[str, list[Any]]]:
    """Yield the URL of an HTTP server, and the types and contents of what it has got."""
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.headers["Content-Type"], json.loads(body)))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/services/s3cret", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Mails:
    """What a mail server has got: sender, recipients and message."""

    def __init__(self) -> None:
        self.got: list[tuple[str, list[str], EmailMessage]] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        message = message_from_bytes(envelope.content, policy=policy.default)
        self.got.append((envelope.mail_from, envelope.rcpt_tos, message))
        return "250 OK"


@contextmanager
def mail_server() -> Iterator[tuple[int, Mails]]:
    """Yield the port of a mail server without encryption, and what it has got."""
    mails, port = Mails(), free_port()
    controller = Controller(mails, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield port, mails
    finally:
        controller.stop()

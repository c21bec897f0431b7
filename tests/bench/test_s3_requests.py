"""The proxy forwards every request unchanged, and logs what it was."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bench.s3_requests import Request, RequestLog, by_kind, counted_requests
from tests.ports import free_port


class Echo(BaseHTTPRequestHandler):
    """Answers with the request's content, to a GET in chunks."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Host-Was", self.headers["Host"])
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")

    def do_HEAD(self) -> None:
        self.send_response(404)
        self.send_header("Content-Length", "99")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server_port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def test_requests_of_one_connection_arrive_and_are_logged(server_port: int, tmp_path: Path) -> None:
    port = free_port()
    with counted_requests(port, server_port, tmp_path / "log", delay_seconds=0.02) as log:
        start = log.position()
        connection = HTTPConnection("127.0.0.1", port)
        connection.request("PUT", "/bucket/key", body=b"x" * 200_000, headers={"Expect": "100-continue"})
        answer = connection.getresponse()
        assert answer.read() == b"x" * 200_000
        # The server sees the request as the client signed it.
        assert answer.headers["Host-Was"] == f"127.0.0.1:{port}"
        connection.request("HEAD", "/bucket/none")
        assert connection.getresponse().read() == b""
        connection.request("GET", "/bucket/?list-type=2&prefix=a")
        assert connection.getresponse().read() == b"abcde"
        connection.close()
        requests = until_logged(log, start, 3)
    assert [(r.method, r.status, r.sent_bytes, r.received_bytes) for r in requests] == [
        ("PUT", 200, 200_000, 200_000),
        ("HEAD", 404, 0, 0),
        ("GET", 200, 0, 5),
    ]
    assert all(request.seconds >= 0.02 for request in requests)
    assert by_kind(requests) == {"HEAD": 1, "LIST": 1, "PUT": 1}
    assert RequestLog(log.path).since(log.position()) == ()


def until_logged(log: RequestLog, start: int, number: int) -> tuple[Request, ...]:
    """Wait for the log entries. The proxy logs a request after it has passed on the answer."""
    deadline = time.monotonic() + 10
    while len(found := log.since(start)) < number and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


@pytest.mark.parametrize(
    ("method", "target", "kind"),
    [
        ("GET", "/bucket?list-type=2", "LIST"),
        ("GET", "/bucket/key", "GET"),
        ("POST", "/bucket/?delete", "DELETE many"),
        ("PUT", "/bucket/key?partNumber=1&uploadId=x", "PUT part"),
        ("POST", "/bucket/key?uploads", "POST"),
        ("DELETE", "/bucket/key", "DELETE"),
    ],
)
def test_a_request_s_kind_is_the_one_that_s3_bills(method: str, target: str, kind: str) -> None:
    assert Request(0, 0, method, target, 200, 0, 0).kind == kind

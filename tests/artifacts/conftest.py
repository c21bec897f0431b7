"""A Maven repository on a free loopback port, and an empty cache, for each test."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tributary.artifacts.lock import Artifact, parse_coordinate

CHUNK = 8192


class Repository(ThreadingHTTPServer):
    """Serves the published files. A test can set the next answers for a file in advance."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.files: dict[str, bytes] = {}
        self.next_answers: dict[str, deque[bytes | int]] = {}
        self.requests: Counter[str] = Counter()
        self.seconds_per_chunk = 0.0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def publish(self, coordinate: str, content: bytes) -> Artifact:
        artifact = parse_coordinate(coordinate, sha256=hashlib.sha256(content).hexdigest(), size=len(content))
        self.files[f"/{artifact.path}"] = content
        return artifact

    def answer_next(self, artifact: Artifact, *answers: bytes | int) -> None:
        """Set other content or an HTTP status for the next requests of the artifact."""
        self.next_answers[f"/{artifact.path}"] = deque(answers)

    def requests_for(self, artifact: Artifact) -> int:
        return self.requests[f"/{artifact.path}"]


class _Answer(BaseHTTPRequestHandler):
    server: Repository

    def do_GET(self) -> None:
        self.server.requests[self.path] += 1
        waiting = self.server.next_answers.get(self.path)
        answer = waiting.popleft() if waiting else self.server.files.get(self.path, 404)
        content = b"" if isinstance(answer, int) else answer
        self.send_response(answer if isinstance(answer, int) else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        for start in range(0, len(content), CHUNK):
            time.sleep(self.server.seconds_per_chunk)
            self.wfile.write(content[start : start + CHUNK])

    def handle(self) -> None:
        with suppress(ConnectionError):  # an interrupted client hangs up
            super().handle()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("TRIBUTARY_CACHE", str(folder))
    return folder


@pytest.fixture
def repository(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    del cache
    with Repository() as server:
        monkeypatch.setenv("TRIBUTARY_MAVEN_REPOSITORY", server.address)
        for proxy in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.delenv(proxy, raising=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()

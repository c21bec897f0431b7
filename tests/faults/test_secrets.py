"""No secret appears in any output of a pipeline at work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.faults.whole_pipeline import Pipeline
from tributary.local import spark
from tributary.local.all_servers import SERVICES_OF_EVERY_LAKE
from tributary.operations.runs.packaging import build_package, unpack_package

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_no_secret_is_in_an_argument_a_log_the_lake_or_the_package(at_work: Pipeline) -> None:
    at_work.wait_for_mark()
    at_work.tributary.run(
        "ingest", status=1
    )  # It is refused with an error message, because another one runs.
    at_work.tributary.run("status", "--json")
    secrets = at_work.tributary.workspace.settings.secrets
    texts = [secret.get_secret_value() for secret in dict(secrets).values()]
    texts.append(secrets.replication_password("shop").get_secret_value())
    assert min(map(len, texts)) > 10

    for name in (*SERVICES_OF_EVERY_LAKE, spark.SERVICE):
        for process in at_work.processes(name):
            # A connection's process may have ended by now.
            with suppress(psutil.NoSuchProcess):
                arguments = " ".join(process.cmdline())
                assert not [text for text in texts if text in arguments], name
    for path in _files(at_work.state.path):
        if any(text.encode() in path.read_bytes() for text in texts):
            assert path.stat().st_mode & 0o077 == 0, path
            assert path.suffix != ".log", path
            assert at_work.state.s3 / "buckets" not in path.parents, path
    for path in _files(unpack_package(build_package())):
        assert not [text for text in texts if text.encode() in path.read_bytes()], path


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield path

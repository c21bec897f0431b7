"""A Kafka broker without the rest of a pipeline."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port
from tributary.local import kafka
from tributary.local.server_files import read_server_files


@contextmanager
def kafka_broker(
    folder: Path, changed: Callable[[Mapping[str, str]], dict[str, str]] = dict
) -> Iterator[kafka.KafkaBroker]:
    """Run a broker with its files in this folder.

    changed  returns the server's settings, from those of a pipeline's broker
    """
    (folder / "tmp").mkdir()
    files = read_server_files()
    broker = kafka.KafkaBroker(
        java=files.java,
        classpath=files.kafka,
        folder=folder,
        log=folder / "kafka.log",
        run=folder,
        port=free_port(),
        controller_port=free_port(),
        cluster_id="MkU3OEVBNTcwNTJENDM2Qg",
    )
    usual = kafka._server_properties
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka, "_server_properties", lambda it: changed(usual(it)))
        try:
            broker.start(threading.Event())
            yield broker
        finally:
            broker.stop(folder)

"""A full disk stops the pipeline without harm, and the pipeline resumes once there is room."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.injected import Injected
from tests.faults.whole_pipeline import Transactions, whole_pipeline
from tests.soak import SOAKS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not SOAKS, reason="takes three minutes"),
]

DISK = "1g"
"""The disk's size: three times what the servers of an empty pipeline need."""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A separate disk, in memory."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        # Unmounting works even if a process that should be gone still has an open file.
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def _filled(disk: Path) -> Iterator[None]:
    """Fill the disk."""
    ballast = disk / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file:
            _write_until_full(file.fileno())
        yield
    finally:
        ballast.unlink()


def _write_until_full(descriptor: int) -> None:
    size = 2**24
    while size:
        try:
            os.write(descriptor, bytes(size))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            size //= 2


def test_a_disk_that_was_full_costs_no_row(small_disk: Path, injected: list[Injected]) -> None:
    with whole_pipeline(small_disk, injected) as at_work:
        at_work.follow()
        with Transactions(at_work.tributary, random.Random("full disk")).running():
            at_work.wait_for_mark()
            with _filled(small_disk):
                time.sleep(60)
            with at_work.recovery("disk full"):
                at_work.repair()
                at_work.wait_for_mark()
        at_work.check()

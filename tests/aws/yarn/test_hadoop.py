"""YARN's servers fit the jars of PySpark, which they run on."""

from __future__ import annotations

from tests.aws.yarn.hadoop import LOCK, SPARK_HOME
from tributary.artifacts.lock import read_lock


def test_the_servers_have_the_version_of_spark_s_hadoop() -> None:
    (servers,) = (one for one in read_lock(LOCK)["yarn"] if one.group == "org.apache.hadoop")
    assert (SPARK_HOME / "jars" / f"hadoop-client-runtime-{servers.version}.jar").is_file()

"""Open a deployed lake with its sources, for a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tributary.operations.aws.linked_lake import LinkedLake


@contextmanager
def deployed_lake_with_sources(lake_file: Path, environment: str | None, state: Path) -> Iterator[LinkedLake]:
    """Open the lake and its sources with the caller's credentials, and word errors for a deployed lake.

    Raises LakeFileError, AwsError, NotDeployed, and the errors of `linked_lake`.
    """
    from tributary.api.open_lake import open_deployed
    from tributary.aws.session import aws_session
    from tributary.cli.aws.remedy_words import worded_for_aws
    from tributary.contract.lake import read_lake
    from tributary.contract.remedies import remedies_of
    from tributary.local.state import StateFolder
    from tributary.operations.aws.deployed_lake import DeployedLake
    from tributary.operations.aws.linked_lake import IN_THE_NETWORK, kafka_of, linked_lake
    from tributary.operations.kafka_topics import KafkaUnreachable

    lake = read_lake(lake_file, environment)
    with worded_for_aws(), aws_session(lake, lake_file) as session:
        deployed = DeployedLake(lake, session)
        opened = open_deployed(lake, session)
        try:
            with linked_lake(deployed, opened, kafka_of(deployed), StateFolder(state)) as linked:
                yield linked
        except KafkaUnreachable as error:
            error.remedies = remedies_of(IN_THE_NETWORK)
            raise

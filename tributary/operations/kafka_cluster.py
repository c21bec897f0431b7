"""How to reach a Kafka cluster from Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class KafkaCluster:
    """How to reach Kafka. `login` has options of librdkafka's clients with which to log in, if one has to."""

    bootstrap: str
    login: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def client_config(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.bootstrap, **self.login}

"""What librdkafka logs about a client of Kafka: for the text of an error, and not on the terminal."""

from __future__ import annotations

import logging


class ClientLog(logging.Handler):
    """Keeps the last line of a client whose option `logger` is `logger`.

    librdkafka delivers the lines when the client polls. Without a logger, it would print each refused
    connection to the terminal, several times a second.
    """

    def __init__(self) -> None:
        super().__init__()
        self.last: str | None = None
        # Not of logging.getLogger, so no handler of the process gets the lines.
        self.logger = logging.Logger("librdkafka")
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line without the names of librdkafka's thread and client."""
        self.last = record.getMessage().rpartition("]: ")[2]

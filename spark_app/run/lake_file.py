"""The lake file of a run that follows: sources and tables that are added to it are taken up."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake, read_lake


@dataclass
class WatchedLakeFile:
    """A lake file that is read again when it has changed.

    A change that cannot be used is reported once on standard error, and what was read before stays."""

    path: Path
    lake: Lake = field(init=False)
    _content: bytes | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Raise the errors of `read_lake`."""
        self.lake, self._content = read_lake(self.path), self._read()

    def current(self) -> Lake:
        """Return what the file says now, or what it said when it was last usable."""
        content = self._read()
        if content == self._content:
            return self.lake
        self._content = content
        try:
            changed = read_lake(self.path)
        except TributaryError as error:
            print(f"The lake file has changed, but cannot be used. {error}", file=sys.stderr)
            return self.lake
        if changed.name == self.lake.name:
            self.lake = changed
        else:
            print(f"The lake file is now of the lake {changed.name}, so it is not used.", file=sys.stderr)
        return self.lake

    def _read(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except OSError:
            return None

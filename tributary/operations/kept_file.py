"""A file with what a command has found out, so that the next one need not find it out again."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from tributary.local.state import write_private_file

Content = TypeVar("Content", bound=BaseModel)


@dataclass(frozen=True)
class KeptFile(Generic[Content]):
    """A file of the state folder. It may be removed, and several commands may write it at once."""

    path: Path
    form: type[Content]

    def read(self) -> Content | None:
        """Return the content, or None if there is no file in this form."""
        try:
            return self.form.model_validate_json(self.path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write(self, content: Content) -> None:
        """Write the content if the disk permits. Everything is right without the file, but slower."""
        with suppress(OSError):
            draft = self.path.with_suffix(f".{os.getpid()}.draft")
            write_private_file(draft, content.model_dump_json())
            draft.replace(self.path)

"""Buttons that save an answer as a file of the browser."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from nicegui import ui

from tributary.api.answer_files import AnswerForm, NotWritten, write_answer

if TYPE_CHECKING:
    import pyarrow as pa


def download_button(title: str, found: pa.Table, form: AnswerForm, name: str) -> None:
    """Draw a button that saves all rows under a name.

    The browser fetches the file by itself. Sent over the page's own connection, a large one would keep all
    pages waiting, and the browser would hold it in its memory.
    """
    client = ui.context.client

    async def save() -> None:
        folder = TemporaryDirectory(prefix="tributary-answer-")
        client.on_delete(folder.cleanup)
        path = Path(folder.name) / name
        button.props("loading")
        try:
            await asyncio.to_thread(write_answer, found, form, path)
        except NotWritten as error:
            with client:
                ui.notify(str(error), type="negative", multi_line=True, close_button="Close", timeout=0)
        else:
            with client:
                ui.download.file(path)
        finally:
            button.props(remove="loading")

    button = ui.button(title, on_click=save).props("flat dense")

"""The view of the pipeline's start: one line for each step, with its seconds."""

from __future__ import annotations

from collections.abc import Collection

from rich.console import Console

from tributary.artifacts.progress import shown_on
from tributary.cli.left_out_view import print_left_out
from tributary.contract.source import Source
from tributary.local.pipeline import RunningPipeline, Seed, up
from tributary.local.startup import State
from tributary.operations.remedy_words import remedy_words
from tributary.operations.workspace import Workspace

_SHOWN_STATES = {"ready": "ready", "running": "was running"}


def start_pipeline(
    workspace: Workspace,
    console: Console,
    *,
    seed: Seed | None = None,
    resnapshot: Collection[Source] = (),
) -> RunningPipeline:
    """Start what is not running, and show the steps. Raises the errors of `local.pipeline.up`."""

    def show(name: str, state: State, seconds: float) -> None:
        if state in _SHOWN_STATES:
            console.print(f"  {name:<16} {_SHOWN_STATES[state]:<12} {seconds:5.1f} s", highlight=False)

    with shown_on(console) as fetch_progress:
        pipeline = up(
            workspace.lake,
            workspace.state,
            show,
            fetch_progress=fetch_progress,
            seed=seed,
            resnapshot=resnapshot,
            words=remedy_words,
        )
    for warning in pipeline.warnings:
        console.print(f"  {warning}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    for left_out in pipeline.left_out:
        print_left_out(left_out, console)
    return pipeline

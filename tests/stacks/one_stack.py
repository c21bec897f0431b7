"""A lake of one source, and the template of one of its stacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template

from tests.stacks.conftest import FLAGS
from tributary.contract.lake import Lake, parse_lake

_LAKE = """
[lake]
name = "{name}"
[source.web]
engine = "postgres"
database = "webshop"
tables = ["public.*"]
[aws]
region = "{region}"
{aws}
"""


def lake_with(aws: str = "", *, name: str = "shop", region: str = "eu-west-1", more: str = "") -> Lake:
    """`aws`: what its `[aws]` says beside the region; `more`: further sections."""
    return parse_lake(_LAKE.format(name=name, region=region, aws=aws) + more)


def template_of(make: Callable[[App], Stack], folder: Path) -> Template:
    """Return the template of the stack that `make` adds to an app with the project's own feature flags."""
    return Template.from_stack(make(App(outdir=str(folder), context=FLAGS)))


def templates_of(
    stack: Callable[[App, Lake], Stack], folders: pytest.TempPathFactory
) -> Callable[[str], Template]:
    """By what `[aws]` says beside the region, which may be nothing: the stack's template, made once."""

    @cache
    def of(aws: str = "") -> Template:
        return template_of(lambda app: stack(app, lake_with(aws)), folders.mktemp("cdk"))

    return of

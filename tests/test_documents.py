"""Every link in the documents, and every page that the code names, leads to an existing page and heading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("bench/*.md"),
        *ROOT.glob("examples/**/README.md"),
    )
)
CODE = ("bench", "connectors", "spark_app", "stacks", "tributary")

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_NAMED_IN_CODE = re.compile(r"\bdocs/[\w-]+\.md(?:#[\w-]+)?")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = [link for link in _LINK.findall(_FENCED.sub("", page.read_text())) if "://" not in link]
    assert [link for link in links if not _leads_somewhere(link, page)] == []


def test_every_page_that_the_code_names_exists() -> None:
    named = {
        (str(path.relative_to(ROOT)), name)
        for folder in CODE
        for path in (ROOT / folder).rglob("*.py")
        for name in _NAMED_IN_CODE.findall(path.read_text())
    }
    assert named
    assert {(path, name) for path, name in named if not _leads_somewhere(name, ROOT / "README.md")} == set()


def test_an_anchor_is_built_like_github_s() -> None:
    assert _anchor("`[source.NAME.connection]`") == "sourcenameconnection"
    assert _anchor("How a column's type may change") == "how-a-columns-type-may-change"


def _leads_somewhere(link: str, page: Path) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not anchor or not target.exists():
        return target.exists()
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", target.read_text()), re.MULTILINE)
    return anchor in map(_anchor, headings)


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")

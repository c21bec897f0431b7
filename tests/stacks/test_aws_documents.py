"""What the documents say of the templates: the picture, the numbers, the cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from stacks.cost import NoPrice, as_table, charges, price_of, sum_of
from stacks.picture import as_mermaid
from stacks.transport_cost import Load
from stacks.transport_cost import as_table as transport_table
from tests.committed import assert_documented
from tests.stacks.conftest import Synthesized
from tests.stacks.lakes import SETTINGS
from tests.stacks.synthesis import PACKS

ROOT = Path(__file__).parents[2]
DESCRIBED = ("small", "production", "serverless-production")


def test_the_picture_is_that_of_the_templates(synthesized: Synthesized) -> None:
    picture = as_mermaid(synthesized("small").templates)
    assert_documented("docs/aws.md", "picture", f"```mermaid\n{picture}\n```")


def test_the_numbers_of_resources_are_those_of_the_templates(synthesized: Synthesized) -> None:
    lakes = {settings: synthesized(settings).templates for settings in DESCRIBED}
    rows = [
        f"| {stack.lower()} | "
        + " | ".join(str(len(templates[stack]["Resources"])) for templates in lakes.values())
        + " |"
        for stack in lakes["small"]
    ]
    sums = [
        sum(len(template["Resources"]) for template in templates.values()) for templates in lakes.values()
    ]
    assert_documented(
        "docs/aws.md",
        "resources",
        "\n".join(
            [
                f"| Stack | {' | '.join(lakes)} |",
                f"|---|{'--:|' * len(lakes)}",
                *rows,
                f"| **all** | {' | '.join(map(str, sums))} |",
            ]
        ),
    )


def test_the_numbers_of_findings_are_those_of_the_packs(synthesized: Synthesized) -> None:
    rows = [
        f"| {pack} | " + " | ".join(str(len(synthesized(each).findings[pack])) for each in DESCRIBED) + " |"
        for pack in PACKS
    ]
    assert_documented(
        "docs/aws.md",
        "findings",
        "\n".join(
            [
                f"| Acknowledged findings; none are open | {' | '.join(DESCRIBED)} |",
                f"|---|{'--:|' * len(DESCRIBED)}",
                *rows,
            ]
        ),
    )


@pytest.mark.parametrize(
    ("document", "settings"),
    [
        ("README.md", "small"),
        ("docs/cost.md", "small"),
        ("docs/cost.md", "production"),
        ("docs/cost.md", "emr-serverless"),
        ("docs/cost.md", "items-alone"),
    ],
)
def test_the_cost_is_that_of_the_templates(synthesized: Synthesized, document: str, settings: str) -> None:
    table = as_table(charges(synthesized(settings).templates))
    assert_documented(document, f"cost of {settings}", table)


def test_the_cost_of_kinesis_and_kafka_is_that_of_the_prices(synthesized: Synthesized) -> None:
    loads = ((100, "small"), (1_000, "small"), (10_000, "production"))
    table = transport_table(
        [(Load(changes, 700), profile, synthesized(profile).templates) for changes, profile in loads]
    )
    assert_documented("docs/kinesis-or-kafka.md", "cost at three loads", table)


@pytest.mark.parametrize(
    ("document", "settings"),
    [("README.md", "small"), ("docs/cost.md", "small"), ("docs/cost.md", "production")],
)
def test_the_text_names_the_sum_of_the_cost(synthesized: Synthesized, document: str, settings: str) -> None:
    least, most = sum_of(charges(synthesized(settings).templates))
    text = " ".join((ROOT / document).read_text().split())
    assert f"{least:.2f} to {most:.2f} dollars" in text


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_resource_has_a_price_or_is_known_to_have_none(synthesized: Synthesized, settings: str) -> None:
    least, most = sum_of(charges(synthesized(settings).templates))
    assert 0 < least < most


def test_what_no_price_is_known_of_is_named() -> None:
    with pytest.raises(NoPrice, match=r"db\.x99\.large"):
        price_of("db.x99.large")

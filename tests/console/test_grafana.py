"""The dashboard for Grafana asks only for metrics and labels that the console has, and can be imported."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.console.views import left_out, view_of, well
from tributary.console.metrics import exposition

DASHBOARD: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs" / "grafana" / "tributary.json").read_text()
)
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
VARIABLES = {one["name"]: one for one in DASHBOARD["templating"]["list"]}


def labels() -> dict[str, set[str]]:
    """Return the labels of each metric of the console."""
    text = exposition(view_of(well(), left_out())).decode()
    families = text_string_to_metric_families(text)
    return {family.name: {*family.samples[0].labels} for family in families}


def test_every_query_asks_for_metrics_that_exist_and_every_metric_is_shown() -> None:
    queries = [*QUERIES, VARIABLES["table"]["query"]["query"]]
    asked = {name for query in queries for name in re.findall(r"tributary_\w+", query)}
    assert asked == {*labels()}


def test_every_label_of_a_query_is_a_label_of_its_metric() -> None:
    known, checked = labels(), 0
    for query in QUERIES:
        for metric, selectors in re.findall(r"(tributary_\w+)\{([^}]*)\}", query):
            names = re.findall(r"(\w+)\s*=~?", selectors)
            assert {*names} <= known[metric], query
            checked += len(names)
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            (metric,) = re.findall(r"tributary_\w+", target["expr"])
            assert {*re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])} <= known[metric]
    assert checked > 4


def test_every_variable_of_a_query_is_declared_and_the_data_source_can_be_chosen() -> None:
    used = {name for query in QUERIES for name in re.findall(r"\$(\w+)", query)}
    assert used == {"table"}
    assert VARIABLES["datasource"]["query"] == "prometheus"
    sources = [part["datasource"] for panel in DASHBOARD["panels"] for part in (panel, *panel["targets"])]
    assert {source["uid"] for source in sources} == {"${datasource}"}


def test_brackets_and_quotes_of_every_query_are_closed() -> None:
    for query in QUERIES:
        plain = re.sub(r'"[^"]*"', "", query)
        assert '"' not in plain
        for opening, closing in ("()", "{}"):
            assert plain.count(opening) == plain.count(closing), query


def test_no_panel_covers_another_one_and_none_is_wider_than_the_page() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        apart_in_x = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        apart_in_y = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert apart_in_x or apart_in_y
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(places)

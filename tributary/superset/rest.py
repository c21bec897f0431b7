"""Superset's REST API: the lake as a database, tiles as datasets and charts, and boards as dashboards.

Whatever has the same name already is changed, so it can be sent any number of times.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import requests

from tributary.contract.errors import TributaryError
from tributary.superset.charts import Chart, Form

_SECONDS = 60


class SupersetRefused(TributaryError):
    """Superset does not accept a request."""


@dataclass(frozen=True)
class Superset:
    """A running Superset, as its administrator."""

    address: str
    session: requests.Session = field(repr=False)

    @classmethod
    def logged_in(cls, address: str, user: str, password: str) -> Superset:
        """Log in. Raises SupersetRefused."""
        session = requests.Session()
        superset = cls(address, session)
        login = {"username": user, "password": password, "provider": "db"}
        session.headers["Authorization"] = (
            f"Bearer {superset._call('POST', 'security/login', login)['access_token']}"
        )
        session.headers["X-CSRFToken"] = superset._call("GET", "security/csrf_token/")["result"]
        session.headers["Referer"] = address
        return superset

    def put_database(self, name: str, uri: str) -> int:
        """Return the id of the database with this name and SQLAlchemy's address."""
        wanted = {"database_name": name, "sqlalchemy_uri": uri, "expose_in_sqllab": True}
        return self._put("database", "database_name", name, wanted)

    def put_dataset(self, database: int, schema: str, table: str) -> int:
        """Return the id of the dataset of a table, with its columns as they are now."""
        known = self._find("dataset", table_name=table, schema=schema)
        if known is not None:
            self._call("PUT", f"dataset/{known}/refresh")
            return known
        return self._create("dataset", {"database": database, "schema": schema, "table_name": table})

    def columns(self, dataset: int) -> tuple[str, ...]:
        """Return the names of a dataset's columns."""
        found = self._call("GET", f"dataset/{dataset}")["result"]["columns"]
        return tuple(str(column["column_name"]) for column in found)

    def put_chart(self, chart: Chart, dataset: int) -> int:
        """Return the id of the dataset's chart."""
        source = f"{dataset}__table"
        wanted = {
            "slice_name": chart.title,
            "viz_type": chart.kind,
            "datasource_id": dataset,
            "datasource_type": "table",
            "params": json.dumps({**chart.form, "datasource": source}),
            "query_context": json.dumps(_question(chart, dataset)),
        }
        known = self._find("chart", datasource_id=dataset, slice_name=chart.title)
        if known is None:
            return self._create("chart", wanted)
        self._call("PUT", f"chart/{known}", wanted)
        return known

    def answer(self, chart: int) -> list[Mapping[str, Any]]:
        """Return the rows that a chart shows."""
        rows: list[Mapping[str, Any]] = self._call("GET", f"chart/{chart}/data/")["result"][0]["data"]
        return rows

    def put_dashboard(self, dashboard: Form) -> str:
        """Return the address of the dashboard, which then has the charts of its positions, and no others."""
        known = self._find("dashboard", slug=dashboard["slug"])
        if known is None:
            named = {name: dashboard[name] for name in ("dashboard_title", "slug")}
            known = self._create("dashboard", named)
        # Only a change takes the charts from the positions.
        self._call("PUT", f"dashboard/{known}", dashboard)
        return f"{self.address}/superset/dashboard/{dashboard['slug']}/"

    def _put(self, kind: str, key: str, name: str, wanted: Form) -> int:
        known = self._find(kind, **{key: name})
        if known is None:
            return self._create(kind, wanted)
        self._call("PUT", f"{kind}/{known}", wanted)
        return known

    def _find(self, kind: str, **equal: Any) -> int | None:
        filters = [{"col": key, "opr": "eq", "value": value} for key, value in equal.items()]
        found = self._call("GET", f"{kind}/?q={_rison(filters)}")["result"]
        return int(found[0]["id"]) if found else None

    def _create(self, kind: str, wanted: Form) -> int:
        return int(self._call("POST", f"{kind}/", wanted)["id"])

    def _call(self, method: str, path: str, body: Form | None = None) -> Mapping[str, Any]:
        url = f"{self.address}/api/v1/{path}"
        try:
            answer = self.session.request(method, url, json=body, timeout=_SECONDS)
        except requests.RequestException as error:
            raise SupersetRefused("Superset does not answer", where=self.address, found=str(error)) from error
        if not answer.ok:
            raise SupersetRefused(
                "Superset refuses a request",
                where=f"{method} /api/v1/{path.partition('?')[0]}",
                found=f"{answer.status_code} {answer.text[:500]}",
                remedy="See superset.log in the state folder.",
            )
        found: Mapping[str, Any] = answer.json()
        return found


def _question(chart: Chart, dataset: int) -> Form:
    return {
        "datasource": {"id": dataset, "type": "table"},
        "force": False,
        "queries": [chart.query],
        "form_data": {**chart.form, "datasource": f"{dataset}__table"},
        "result_format": "json",
        "result_type": "full",
    }


def _rison(filters: list[Form]) -> str:
    """Return filters as Superset's API reads them: JSON is not enough, Rison is its own notation."""
    parts = [f"(col:{one['col']},opr:{one['opr']},value:{_rison_value(one['value'])})" for one in filters]
    return f"(filters:!({','.join(parts)}))"


def _rison_value(value: object) -> str:
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("!", "!!").replace("'", "!'")
    return f"'{text}'"

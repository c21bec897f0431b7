"""The ticket shop's customers as items of DynamoDB: a table, and changes of its items."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tributary.tickit.vocabulary import CITIES, FIRST_NAMES, LANGUAGES, LAST_NAMES, TAGS
from tributary.tickit.workload import Plan, Summary, wait_until

TABLE = "customers"
FIRST_ID = 100_001

_CHANGES = ("sign up", "buy", "move", "leave")
_WEIGHTS = (25, 40, 20, 15)

Item = Mapping[str, Any]


@dataclass
class Customers:
    """The customers of a DynamoDB. The same seed makes the same changes.

    there  the ids of the present items
    """

    dynamodb: Any
    chance: random.Random
    there: list[int] = field(default_factory=list)
    last: int = FIRST_ID - 1

    def create(self, count: int) -> None:
        """Create the table with this many items."""
        self.dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        for _ in range(count):
            self.sign_up()

    def trade(self, plan: Plan, stop: threading.Event | None = None) -> Summary:
        """Make the plan's changes, one item each."""
        counts: Counter[str] = Counter()
        started = time.monotonic()
        for number in range(plan.transactions):
            if stop is not None and stop.is_set():
                break
            change = self.chance.choices(_CHANGES, _WEIGHTS)[0] if self.there else "sign up"
            self._make(change)
            counts[change] += 1
            if plan.rate is not None:
                wait_until(started + (number + 1) / plan.rate, stop)
        return Summary(dict(counts), sum(counts.values()))

    def _make(self, change: str) -> None:
        match change:
            case "buy":
                paid = {":paid": {"N": f"{self.chance.randrange(1_000, 40_000) / 100:.2f}"}}
                self._update("ADD spent :paid, orders :one", {**paid, ":one": {"N": "1"}})
            case "move":
                self._update("SET address = :address", {":address": self._address()})
            case "leave":
                gone = self.there.pop(self.chance.randrange(len(self.there)))
                self.dynamodb.delete_item(TableName=TABLE, Key=_key(gone))
            case _:
                self.sign_up()

    def sign_up(self) -> None:
        self.last += 1
        self.there.append(self.last)
        tags = self.chance.sample(TAGS, self.chance.randrange(3))
        self.dynamodb.put_item(
            TableName=TABLE,
            Item={
                **_key(self.last),
                "name": {"S": f"{self.chance.choice(FIRST_NAMES)} {self.chance.choice(LAST_NAMES)}"},
                "language": {"S": self.chance.choice(LANGUAGES)},
                "address": self._address(),
                "spent": {"N": "0"},
                "orders": {"N": "0"},
                **({"likes": {"SS": tags}} if tags else {}),
            },
        )

    def _update(self, expression: str, values: Item) -> None:
        self.dynamodb.update_item(
            TableName=TABLE,
            Key=_key(self.chance.choice(self.there)),
            UpdateExpression=expression,
            ExpressionAttributeValues=values,
        )

    def _address(self) -> Item:
        city, state = self.chance.choice(CITIES)
        return {"M": {"city": {"S": city}, "state": {"S": state}}}


def _key(number: int) -> dict[str, Any]:
    return {"id": {"S": str(number)}}

"""A stationer in eight countries: its products, its stock and its purchases. A seed decides everything."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

OPENING = datetime(2026, 3, 2, 8, tzinfo=UTC)
CENT = Decimal("0.01")
KNOWN_SEED, KNOWN_PURCHASES = 43, 250
"""The generator's input for the known file."""


@dataclass(frozen=True)
class Product:
    """`cost` is what the shop itself pays for a piece."""

    product_id: int
    name: str
    category: str
    price: Decimal
    cost: Decimal


@dataclass(frozen=True)
class Purchase:
    """A customer buys pieces of one product. `amount` is the price of all pieces, less a discount."""

    purchase_id: int
    product_id: int
    country: str
    quantity: int
    amount: Decimal
    purchased_at: datetime

    @property
    def as_json(self) -> str:
        """The event in Kafka."""
        time = self.purchased_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return json.dumps({**vars(self), "amount": float(self.amount), "purchased_at": time})


@dataclass(frozen=True)
class Rates:
    """How the shop trades.

    per_minute  purchases in a minute of the shop's time, on average
    delayed     the share of purchases that arrive up to eight minutes after they were made
    repeated    the share of purchases that are sent a second time
    restock_at  the stock of a product that lets the shop order more of it
    """

    per_minute: float = 3
    delayed: float = 0.1
    repeated: float = 0.05
    restock_at: int = 15


@dataclass(frozen=True)
class Sold:
    """A purchase is sent, and the stock is lowered."""

    purchase: Purchase


@dataclass(frozen=True)
class SentAgain:
    """The sender does not know whether Kafka has the purchase, and sends it again."""

    purchase: Purchase


@dataclass(frozen=True)
class Restocked:
    """The shop gets more pieces of a product."""

    product_id: int
    quantity: int


Event = Sold | SentAgain | Restocked
Stock = Mapping[int, int]
"""The pieces in stock by product."""


def generate_products(seed: int = 1) -> Mapping[int, Product]:
    """Return the products by their numbers."""
    source = random.Random(f"{seed} products")
    names = [(name, category) for category, names in _CATEGORIES.items() for name in names]
    return {number: _product(source, number, *names[number - 1]) for number in range(1, len(names) + 1)}


def generate_stock(seed: int = 1) -> Stock:
    """Return the stock before the trade."""
    source = random.Random(f"{seed} stock")
    return {number: source.randrange(20, 60) for number in generate_products(seed)}


def generate_purchases(
    count: int, seed: int = 1, rates: Rates = Rates(), *, first_id: int = 1, at: datetime = OPENING
) -> Iterator[Purchase]:
    """Yield purchases in the order of their times, beginning with the number and the time."""
    source = random.Random(f"{seed} purchases {first_id}")
    products = tuple(generate_products(seed).values())
    popularity = [1 / (place + 4) for place in range(len(products))]
    for number in range(first_id, first_id + count):
        at += timedelta(milliseconds=source.randrange(round(120_000 / rates.per_minute)))
        product = source.choices(products, popularity)[0]
        country = source.choices(tuple(_COUNTRIES), tuple(_COUNTRIES.values()))[0]
        quantity = source.choices((1, 2, 3, 5, 10), (50, 25, 12, 8, 5))[0]
        share = Decimal(source.choice((100, 100, 100, 95, 90))) * CENT
        amount = (product.price * quantity * share).quantize(CENT, ROUND_HALF_UP)
        yield Purchase(number, product.product_id, country, quantity, amount, at)


def known_purchases() -> Iterator[Purchase]:
    """Yield the purchases of the known file. They come from a day of their own."""
    return generate_purchases(KNOWN_PURCHASES, KNOWN_SEED, Rates(), at=OPENING - timedelta(days=1))


def trade(count: int, seed: int = 1, rates: Rates = Rates()) -> Iterator[Event]:
    """Yield what happens, in the order in which it happens.

    A delayed purchase is less than the watermark of ten minutes behind the purchases before it, so it is
    in time."""
    source = random.Random(f"{seed} trade")
    stock = dict(generate_stock(seed))
    to_repeat: list[Purchase] = []
    for purchase in generate_purchases(count, seed, rates):
        if source.random() < rates.delayed:
            delay = timedelta(milliseconds=source.randrange(8 * 60_000))
            purchase = replace(purchase, purchased_at=max(purchase.purchased_at - delay, OPENING))
        yield Sold(purchase)
        if source.random() < rates.repeated:
            to_repeat.append(purchase)
        elif to_repeat and source.random() < 0.5:
            yield SentAgain(to_repeat.pop(0))
        stock[purchase.product_id] -= purchase.quantity
        if stock[purchase.product_id] < rates.restock_at:
            more = source.randrange(40, 80)
            stock[purchase.product_id] += more
            yield Restocked(purchase.product_id, more)
    yield from map(SentAgain, to_repeat)


def late_purchases(count: int, after: int, seed: int = 1) -> Iterator[Sold]:
    """Yield purchases of the first minutes that a shop without a network sends after the trade.

    after  how many purchases the trade had
    """
    for purchase in generate_purchases(count, seed, Rates(per_minute=6), first_id=after + 1):
        yield Sold(purchase)


def stock_after(stock: Stock, events: Iterable[Event]) -> Stock:
    """Return the stock after the events."""
    left = dict(stock)
    for event in events:
        match event:
            case Sold(purchase):
                left[purchase.product_id] -= purchase.quantity
            case Restocked(product_id, quantity):
                left[product_id] += quantity
            case SentAgain():
                pass
    return left


_COUNTRIES = {
    "Canada": 18,
    "Chile": 8,
    "France": 20,
    "Ghana": 7,
    "India": 16,
    "Italy": 14,
    "South Korea": 12,
    "Spain": 9,
}
"""How often customers of a country buy."""

_CATEGORIES = {
    "Ink": ("Blue-black ink", "Sepia ink", "Drawing ink", "Ink cartridges"),
    "Notebooks": ("Pocket notebook", "Sketchbook", "Squared pad", "Music notebook"),
    "Paper": ("Letter paper", "Envelopes", "Watercolor paper", "Tracing paper"),
    "Pens": ("Fountain pen", "Fineliner", "Brush pen", "Mechanical pencil"),
    "Tools": ("Steel ruler", "Paper knife", "Eraser", "Pencil case"),
}


def _product(source: random.Random, number: int, name: str, category: str) -> Product:
    price = source.randrange(150, 4000) * CENT
    cost = (price * source.randrange(40, 75) * CENT).quantize(CENT, ROUND_HALF_UP)
    return Product(number, name, category, price, cost)

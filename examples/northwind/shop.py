"""A wholesaler of food: its customers, products and orders, and its trade. A seed decides everything."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal

FIRST_DAY = date(2026, 1, 5)
DAYS = 180
CENT = Decimal("0.01")


@dataclass(frozen=True)
class Customer:
    customer_id: str
    company: str
    contact: str
    city: str
    country: str
    phone: str | None


@dataclass(frozen=True)
class Product:
    product_id: int
    name: str
    category: str
    unit_price: Decimal


@dataclass(frozen=True)
class Item:
    """A line of an order. `discount` is a share, such as 0.05."""

    product_id: int
    unit_price: Decimal
    quantity: int
    discount: Decimal


@dataclass(frozen=True)
class Order:
    """An order with its items by product."""

    order_id: int
    customer_id: str
    ordered_on: date
    shipped_on: date | None
    freight: Decimal
    items: Mapping[int, Item]


@dataclass(frozen=True)
class Shop:
    """All rows of the database, without the outbox."""

    customers: Mapping[str, Customer]
    products: Mapping[int, Product]
    orders: Mapping[int, Order]


@dataclass(frozen=True)
class OrderPlaced:
    order: Order

    def applied_to(self, shop: Shop) -> Shop:
        return _with_order(shop, self.order)


@dataclass(frozen=True)
class OrderShipped:
    order_id: int
    shipped_on: date

    def applied_to(self, shop: Shop) -> Shop:
        return _with_order(shop, replace(shop.orders[self.order_id], shipped_on=self.shipped_on))


@dataclass(frozen=True)
class ItemsChanged:
    """An order gets an item, other quantities or fewer items, all in one transaction.

    items  all items that the order has from then on
    """

    order_id: int
    items: Mapping[int, Item]

    def applied_to(self, shop: Shop) -> Shop:
        return _with_order(shop, replace(shop.orders[self.order_id], items=self.items))


@dataclass(frozen=True)
class OrderCancelled:
    """The order is deleted with its items."""

    order_id: int

    def applied_to(self, shop: Shop) -> Shop:
        left = {number: order for number, order in shop.orders.items() if number != self.order_id}
        return replace(shop, orders=left)


@dataclass(frozen=True)
class CustomerCalled:
    """A customer tells another contact and phone number."""

    customer_id: str
    contact: str
    phone: str

    def applied_to(self, shop: Shop) -> Shop:
        customer = replace(shop.customers[self.customer_id], contact=self.contact, phone=self.phone)
        return replace(shop, customers={**shop.customers, self.customer_id: customer})


Change = OrderPlaced | OrderShipped | ItemsChanged | OrderCancelled | CustomerCalled
"""What one transaction does."""


def generate(seed: int = 1, customers: int = 40, orders: int = 400) -> Shop:
    """Return the shop before the trade. The first customers order much more often than the last ones."""
    source = random.Random(f"{seed} shop")
    products = {
        number: Product(number, name, category, _money(source, 2, 60))
        for number, (name, category) in enumerate(_products(), start=1)
    }
    found = {customer.customer_id: customer for customer in _customers(source, customers)}
    shop = Shop(found, products, {})
    placed = {number: _order(source, shop, number) for number in range(1, orders + 1)}
    return replace(shop, orders=placed)


def trade(shop: Shop, transactions: int, seed: int = 1) -> Iterator[Change]:
    """Yield the changes that happen to the shop, one for each transaction."""
    source = random.Random(f"{seed} trade")
    number = max(shop.orders)
    for _ in range(transactions):
        kind = source.choices(tuple(_KINDS), tuple(_KINDS.values()))[0]
        order = shop.orders[source.choice(tuple(shop.orders))]
        change: Change
        if kind == "place":
            number += 1
            change = OrderPlaced(_order(source, shop, number))
        elif kind == "ship":
            change = OrderShipped(order.order_id, order.ordered_on + timedelta(days=source.randrange(1, 9)))
        elif kind == "items":
            change = ItemsChanged(order.order_id, _other_items(source, shop, order))
        elif kind == "cancel":
            change = OrderCancelled(order.order_id)
        else:
            customer = source.choice(tuple(shop.customers))
            change = CustomerCalled(customer, _contact(source), _phone(source))
        yield change
        shop = change.applied_to(shop)


def after(shop: Shop, changes: Iterator[Change]) -> Shop:
    """Return the shop after the changes."""
    for change in changes:
        shop = change.applied_to(shop)
    return shop


_KINDS = {"place": 40, "ship": 20, "items": 22, "cancel": 8, "call": 10}
_COUNTRIES = {
    "Austria": ("Linz", "Graz"),
    "Brazil": ("Recife", "Curitiba"),
    "Germany": ("Bremen", "Leipzig"),
    "Japan": ("Sapporo", "Nagoya"),
    "Kenya": ("Mombasa", "Nakuru"),
    "Norway": ("Bergen", "Tromsø"),
    "Portugal": ("Porto", "Faro"),
    "USA": ("Duluth", "Tacoma"),
}
_FIRST = ("Ada", "Ben", "Carla", "Dario", "Edda", "Femi", "Greta", "Hugo", "Ines", "Jonas", "Keiko", "Liv")
_LAST = ("Adler", "Brandt", "Costa", "Dahl", "Eriksen", "Fontes", "Gruber", "Huber", "Ito", "Jensen", "Kamau")
_COMPANIES = (
    "Harbor",
    "Meadow",
    "Lantern",
    "Juniper",
    "Copper",
    "Summit",
    "Willow",
    "Anchor",
    "Saffron",
    "Maple",
)
_TRADES = ("Foods", "Grocers", "Kitchen", "Deli", "Market")
_CATEGORIES = {
    "Bakery": ("Rye bread", "Oat biscuits", "Almond cake", "Sesame rings", "Spelt rolls"),
    "Beverages": ("Mint tea", "Cold brew", "Elderflower syrup", "Ginger beer", "Apple juice"),
    "Dairy": ("Goat cheese", "Salted butter", "Skyr", "Smoked cheddar", "Cream"),
    "Pantry": ("Red lentils", "Basmati rice", "Olive oil", "Peach jam", "Sea salt"),
    "Produce": ("Dried pears", "Tofu", "Fennel", "Plum tomatoes", "Walnuts"),
    "Seafood": ("Smoked trout", "Pickled herring", "Crab paste", "Kelp", "Anchovies"),
}


def _products() -> Iterator[tuple[str, str]]:
    return ((name, category) for category, names in _CATEGORIES.items() for name in names)


def _customers(source: random.Random, count: int) -> Iterator[Customer]:
    names = [f"{company} {kind}" for kind in _TRADES for company in _COMPANIES]
    for number, name in enumerate(source.sample(names, count), start=1):
        country = source.choice(tuple(_COUNTRIES))
        city = source.choice(_COUNTRIES[country])
        customer_id = f"{name[:3].upper()}{number:02}"
        yield Customer(customer_id, name, _contact(source), city, country, _phone(source))


def _order(source: random.Random, shop: Shop, number: int) -> Order:
    names = tuple(shop.customers)
    customer = source.choices(names, [1 / (place + 3) for place in range(len(names))])[0]
    chosen = source.sample(tuple(shop.products.values()), source.randrange(1, 6))
    items = {product.product_id: _item(source, product) for product in chosen}
    day = FIRST_DAY + timedelta(days=source.randrange(DAYS))
    return Order(number, customer, day, None, _money(source, 3, 40), items)


def _item(source: random.Random, product: Product) -> Item:
    discount = Decimal(source.choice((0, 0, 0, 5, 10, 15))) * CENT
    return Item(product.product_id, product.unit_price, source.randrange(1, 40), discount)


def _other_items(source: random.Random, shop: Shop, order: Order) -> Mapping[int, Item]:
    """Return the items with another quantity of one, sometimes one more, and sometimes one less."""
    items = dict(order.items)
    if len(items) > 1 and source.random() < 0.3:
        del items[source.choice(tuple(items))]
    changed = source.choice(tuple(items))
    items[changed] = replace(items[changed], quantity=source.randrange(1, 40))
    if source.random() < 0.4:
        product = shop.products[source.choice(tuple(shop.products))]
        items.setdefault(product.product_id, _item(source, product))
    return items


def _with_order(shop: Shop, order: Order) -> Shop:
    return replace(shop, orders={**shop.orders, order.order_id: order})


def _contact(source: random.Random) -> str:
    return f"{source.choice(_FIRST)} {source.choice(_LAST)}"


def _phone(source: random.Random) -> str:
    return f"+{source.randrange(1, 99)} 555 {source.randrange(10_000):04}"


def _money(source: random.Random, least: int, most: int) -> Decimal:
    return source.randrange(100 * least, 100 * most) * CENT

"""The stationer's PostgreSQL: its products, and its stock as the shop changes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from examples.sales.shop import Event, Restocked, SentAgain, Sold, generate_products, generate_stock

SCHEMA = Path(__file__).with_name("shop.sql")
_CHANGE = "UPDATE inventories SET in_stock = in_stock + %s WHERE product_id = %s"


def write_shop(connection: psycopg.Connection[Any], seed: int) -> None:
    """Create the tables, and insert the products and their stock."""
    products = generate_products(seed).values()
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(SCHEMA.read_bytes())
        cursor.executemany(
            "INSERT INTO products VALUES (%s, %s, %s, %s, %s)",
            [(one.product_id, one.name, one.category, one.price, one.cost) for one in products],
        )
        cursor.executemany("INSERT INTO inventories VALUES (%s, %s)", list(generate_stock(seed).items()))


def change_stock(connection: psycopg.Connection[Any], event: Event) -> None:
    """Change the stock as the event does. The connection commits each statement."""
    match event:
        case Sold(purchase):
            connection.execute(_CHANGE, (-purchase.quantity, purchase.product_id))
        case Restocked(product_id, quantity):
            connection.execute(_CHANGE, (quantity, product_id))
        case SentAgain():
            pass

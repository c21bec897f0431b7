"""The shop in PostgreSQL: its tables, its rows and its transactions. Only the triggers write events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from examples.northwind.shop import (
    Change,
    CustomerCalled,
    Item,
    ItemsChanged,
    Order,
    OrderCancelled,
    OrderPlaced,
    OrderShipped,
    Shop,
)

SCHEMA = Path(__file__).with_name("shop.sql")


def write_shop(connection: psycopg.Connection[Any], shop: Shop) -> None:
    """Create the tables and insert the shop. Each order is a transaction, as it would be in a real shop."""
    with connection.transaction():
        connection.execute(SCHEMA.read_bytes())
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO products VALUES (%s, %s, %s, %s)",
            [(row.product_id, row.name, row.category, row.unit_price) for row in shop.products.values()],
        )
        cursor.executemany(
            "INSERT INTO customers VALUES (%s, %s, %s, %s, %s, %s)",
            [
                (row.customer_id, row.company, row.contact, row.city, row.country, row.phone)
                for row in shop.customers.values()
            ],
        )
    for order in shop.orders.values():
        apply_change(connection, OrderPlaced(order))


def apply_change(connection: psycopg.Connection[Any], change: Change) -> None:
    """Make the change in one transaction. The triggers write its event."""
    with connection.transaction():
        match change:
            case OrderPlaced(order):
                _insert_order(connection, order)
            case OrderShipped(order_id, shipped_on):
                connection.execute(
                    "UPDATE orders SET shipped_on = %s WHERE order_id = %s", (shipped_on, order_id)
                )
            case ItemsChanged(order_id, items):
                connection.execute(
                    "DELETE FROM order_items WHERE order_id = %s AND product_id <> ALL(%s)",
                    (order_id, list(items)),
                )
                for item in items.values():
                    _write_item(connection, order_id, item)
            case OrderCancelled(order_id):
                connection.execute("DELETE FROM orders WHERE order_id = %s", (order_id,))
            case CustomerCalled(customer_id, contact, phone):
                connection.execute(
                    "UPDATE customers SET contact = %s, phone = %s WHERE customer_id = %s",
                    (contact, phone, customer_id),
                )


def _insert_order(connection: psycopg.Connection[Any], order: Order) -> None:
    connection.execute(
        "INSERT INTO orders (order_id, customer_id, ordered_on, order_month, shipped_on, freight)"
        " VALUES (%s, %s, %s, %s, %s, %s)",
        (
            order.order_id,
            order.customer_id,
            order.ordered_on,
            f"{order.ordered_on:%Y-%m}",
            order.shipped_on,
            order.freight,
        ),
    )
    for item in order.items.values():
        _write_item(connection, order.order_id, item)


def _write_item(connection: psycopg.Connection[Any], order_id: int, item: Item) -> None:
    connection.execute(
        "INSERT INTO order_items VALUES (%s, %s, %s, %s, %s)"
        " ON CONFLICT (order_id, product_id) DO UPDATE SET quantity = EXCLUDED.quantity"
        " WHERE order_items.quantity <> EXCLUDED.quantity",
        (order_id, item.product_id, item.unit_price, item.quantity, item.discount),
    )

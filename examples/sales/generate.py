"""Write what the generator makes as files, for a database and a Kafka that run elsewhere.

The folder gets products.csv, inventories.csv, purchases.jsonl and known_purchases.jsonl."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from examples.options import run_example
from examples.sales.settings import add_settings, rates_of
from examples.sales.shop import (
    Event,
    Purchase,
    Restocked,
    generate_products,
    generate_stock,
    known_purchases,
    late_purchases,
    trade,
)


def main() -> None:
    """Write the files that the options describe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder for the files; it is created if necessary")
    add_settings(parser)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    products = generate_products(options.seed).values()
    _write_csv(options.folder / "products.csv", [tuple(vars(one).values()) for one in products])
    _write_csv(options.folder / "inventories.csv", list(generate_stock(options.seed).items()))
    events = list(trade(options.purchases, options.seed, rates_of(options)))
    late = late_purchases(options.late, options.purchases, options.seed)
    _write_lines(options.folder / "purchases.jsonl", sent([*events, *late]))
    _write_lines(options.folder / "known_purchases.jsonl", known_purchases())


def sent(events: Iterable[Event]) -> Iterator[Purchase]:
    """Yield what the events send to Kafka, in their order, with repetitions."""
    return (event.purchase for event in events if not isinstance(event, Restocked))


def _write_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def _write_lines(path: Path, purchases: Iterable[Purchase]) -> None:
    path.write_text("".join(f"{purchase.as_json}\n" for purchase in purchases), encoding="utf-8")


if __name__ == "__main__":
    run_example(main)

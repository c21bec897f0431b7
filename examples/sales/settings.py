"""The options that set how the stationer trades."""

from __future__ import annotations

import argparse

from examples.options import number, whole
from examples.sales.shop import Rates


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options of the generator to a command."""
    usual = Rates()
    parser.add_argument(
        "--purchases", type=whole(30, 1_000_000), default=900, help="how many purchases the trade has"
    )
    parser.add_argument(
        "--late", type=whole(0, 1000), default=20, help="how many purchases come hours late, at the end"
    )
    parser.add_argument(
        "--per-minute",
        type=number(0.1, 10_000),
        default=usual.per_minute,
        help="purchases in a minute of the shop's time",
    )
    parser.add_argument(
        "--delayed",
        type=number(0, 1),
        default=usual.delayed,
        help="the share that arrives up to 8 minutes late",
    )
    parser.add_argument(
        "--repeated", type=number(0, 1), default=usual.repeated, help="the share that is sent a second time"
    )
    parser.add_argument(
        "--restock-at",
        type=whole(0, 1000),
        default=usual.restock_at,
        help="the stock that lets the shop order more",
    )
    parser.add_argument(
        "--seed", type=whole(0, 1_000_000), default=1, help="another seed gives other products and purchases"
    )


def rates_of(options: argparse.Namespace) -> Rates:
    """Return the rates that the options set."""
    return Rates(options.per_minute, options.delayed, options.repeated, options.restock_at)

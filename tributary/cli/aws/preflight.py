"""The preflight as the command `submit` uses it: its table, and whether a follow job may start."""

from __future__ import annotations

from tributary.cli.rendering import output, print_table
from tributary.contract.errors import TributaryError
from tributary.contract.preflight import Check, Preflight
from tributary.operations.aws.deployed_lake import DeployedLake
from tributary.operations.aws.lake_objects import read_preflight


class NotPreflown(TributaryError):
    """A follow job on a release on which the preflight has not passed."""


def last_preflight(deployed: DeployedLake) -> Preflight | None:
    """Return the result of the last preflight on the release that the lake file names."""
    addresses = deployed.addresses
    return read_preflight(deployed.session.s3, addresses.quarantine, addresses.release)


def refusal_without(found: Preflight | None, release: str) -> NotPreflown | None:
    """Return why a follow job must not start, or None if it may."""
    if found is not None and found.is_passed:
        return None
    failed = [] if found is None else [f"{one.name}: {one.detail}" for one in _failed(found)]
    return NotPreflown(
        f"The preflight has not passed on {release}",
        found="; ".join(failed) if found is not None else "no result of a preflight",
        remedy=[
            "Run tributary submit preflight --wait.",
            "To start without it, use --without-preflight.",
        ],
    )


def print_preflight(found: Preflight) -> None:
    """Print the checks as a table, and what they mean."""
    print_table(
        ("check", "state", "found"),
        [(check.name, check.state, check.detail) for check in found.checks],
    )
    output.print()
    if not found.is_passed:
        text = f"{found.release} does not run the Spark app."
    elif found.is_accelerated:
        text = f"{found.release} runs the Spark app with its Java."
    else:
        text = f"{found.release} runs the Spark app in plain PySpark, which is slower."
    output.print(text, highlight=False, soft_wrap=True)


def _failed(found: Preflight) -> list[Check]:
    return [check for check in found.checks if check.is_required and check.state == "failed"]

"""The roots by which connectors verify Amazon's databases are valid, of known regions, and nothing else."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from cryptography import x509

from connectors.certificates import PEM, RDS_ROOTS, REGIONS, TRUST_STORE
from connectors.engines.mariadb.engine import MariaDbEngine
from connectors.engines.mysql.engine import MySqlEngine
from connectors.engines.postgres.connector import encrypted_on_aws
from connectors.engines.sqlserver.connector import VERIFIED_ON_AWS

ROOTS = x509.load_pem_x509_certificates(RDS_ROOTS.read_bytes())


def test_every_root_is_amazon_s_own_and_valid_for_years() -> None:
    for root in ROOTS:
        root.verify_directly_issued_by(root)
        assert "O=Amazon Web Services" in root.subject.rfc4514_string()
        assert root.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        assert root.not_valid_after_utc > datetime.now(UTC) + timedelta(days=3 * 365)


def test_each_region_has_a_root_for_each_kind_of_key() -> None:
    names = [
        re.search(r"CN=Amazon RDS ([a-z0-9-]+) Root CA (\w+) G1", root.subject.rfc4514_string())
        for root in ROOTS
    ]
    found = [(name[1], name[2]) for name in names if name is not None]
    assert len(found) == len(ROOTS) == 3 * len(REGIONS)
    assert {region for region, _ in found} == REGIONS
    assert {kind for _, kind in found} == {"RSA2048", "RSA4096", "ECC384"}


def test_each_engine_on_aws_refers_to_the_roots() -> None:
    of_each = (
        encrypted_on_aws("verify-full"),
        MySqlEngine().verified_on_aws(),
        MariaDbEngine().verified_on_aws(),
        VERIFIED_ON_AWS,
    )
    for options in of_each:
        assert {PEM, TRUST_STORE} & {*options.values()}, options
    assert PEM not in encrypted_on_aws("require").values()

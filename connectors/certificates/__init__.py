"""The roots of the certificates of Amazon's databases, by which a connector on AWS verifies a server."""

from __future__ import annotations

from pathlib import Path

PROVIDER = "io.tributary.connect.CertificatesConfigProvider"
"""The class in connectors/java that gives a worker the roots as files."""

RDS_ROOTS = Path(__file__).with_name("rds.pem")

REGIONS = frozenset(
    {
        *("af-south-1", "ap-east-1", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1"),
        *("ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4"),
        *("ca-central-1", "eu-central-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2"),
        *("eu-west-1", "eu-west-2", "eu-west-3", "me-central-1", "me-south-1", "sa-east-1"),
        *("us-east-1", "us-east-2", "us-west-1", "us-west-2"),
    }
)
"""The regions whose roots the file has."""

PEM = "${certificates:rds:pem}"
TRUST_STORE = "${certificates:rds:truststore}"
TRUST_STORE_PASSWORD = "${certificates:rds:password}"
"""What a worker replaces with the path of a file with the roots, and with the password of the trust store."""

STORE_PASSWORD = "changeit"
"""The password of a trust store that a person makes. Java's own has it. It holds public certificates only."""

"""A verified connection of MySQL, MariaDB or SQL Server names its certificates, and where they are."""

from __future__ import annotations

import pytest

from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake, parse_lake

ENGINES = {"mysql": "", "mariadb": "", "sqlserver": 'database = "ERP"\n'}
each_engine = pytest.mark.parametrize("engine", ENGINES)


def lake_of(engine: str, entries: str) -> Lake:
    return parse_lake(
        f'[lake]\nname = "shop"\n[source.web]\nengine = "{engine}"\n{ENGINES[engine]}tables = ["shop.*"]\n'
        f'[source.web.connection]\nhost = "db"\npassword_env = "P"\n{entries}'
    )


@each_engine
def test_both_forms_of_the_certificates_are_needed(engine: str) -> None:
    lake_of(engine, 'ssl_mode = "verified"\nca_file = "/ca.pem"\ntrust_store = "/ca.p12"\n')
    with pytest.raises(TributaryError, match="no ca_file and no trust_store"):
        lake_of(engine, 'ssl_mode = "verified"\n')
    with pytest.raises(TributaryError, match="no trust_store"):
        lake_of(engine, 'ssl_mode = "verified"\nca_file = "/ca.pem"\n')


@each_engine
def test_certificates_are_refused_where_nobody_reads_them_or_finds_them(engine: str) -> None:
    with pytest.raises(TributaryError, match="certificates that nobody reads: found ca_file with required"):
        lake_of(engine, 'ca_file = "/ca.pem"\n')
    with pytest.raises(TributaryError, match=r"\.ca_file: .*an absolute path"):
        lake_of(engine, 'ssl_mode = "verified"\nca_file = "ca.pem"\ntrust_store = "/ca.p12"\n')

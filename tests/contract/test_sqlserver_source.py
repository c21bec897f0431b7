"""The entries of a SQL Server source, and what is said about those that cannot work."""

from __future__ import annotations

import pytest

from tributary.contract.errors import TributaryError
from tributary.contract.lake import Lake, parse_lake
from tributary.local.engine_servers import NoServerHere, server_of


def lake_of(*lines: str, database: str = "ERP") -> Lake:
    head = f'[source.erp]\nengine = "sqlserver"\ndatabase = "{database}"\ntables = ["dbo.*"]\n'
    return parse_lake("\n".join(('[lake]\nname = "shop"', head, *lines)))


CONNECTION = '[source.erp.connection]\nhost = "db"\npassword_env = "P"\n'


def test_topics_begin_with_the_database() -> None:
    lake = lake_of()
    names = lake.source_names(lake.source("erp"))
    assert names.topic("dbo", "orders") == "shop.erp.ERP.dbo.orders"


@pytest.mark.parametrize("database", ["", "a b", "a.b", "a,b", "a;b", "[a]", "ä"])
def test_a_database_that_debezium_cannot_name_is_refused(database: str) -> None:
    with pytest.raises(TributaryError, match="letters, digits, underscores and hyphens"):
        lake_of(database=database)


def test_verifying_a_server_needs_the_certificates_twice() -> None:
    with pytest.raises(TributaryError, match="no ca_file and no trust_store"):
        lake_of(CONNECTION, 'ssl_mode = "verified"')
    with pytest.raises(TributaryError, match="no trust_store"):
        lake_of(CONNECTION, 'ssl_mode = "verified"\nca_file = "/ca.pem"')
    lake_of(CONNECTION, 'ssl_mode = "verified"\nca_file = "/ca.pem"\ntrust_store = "/ca.p12"')


def test_connections_are_encrypted_unless_the_file_says_otherwise() -> None:
    connection = lake_of(CONNECTION).source("erp").connection
    assert connection is not None
    assert (connection.port, connection.ssl_mode) == (1433, "required")  # type: ignore[attr-defined]


def test_there_is_no_server_here_but_one_is_made_on_aws() -> None:
    with pytest.raises(NoServerHere, match=r"starts no SQL Server on this machine.*no connection") as failed:
        server_of(lake_of().source("erp"))
    assert "[source.erp.connection]" in str(failed.value)
    aws = lake_of('[aws]\nregion = "eu-west-1"').aws
    assert aws is not None
    assert (aws.sqlserver.edition, aws.sqlserver.kept_minutes) == ("standard", 3 * 24 * 60)

"""The lake: closed buckets that outlive their stack, a catalog, and queries that cannot cost too much."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import duckdb
import pytest
from aws_cdk.assertions import Match, Template

from stacks.lake.demo_queries import demo_queries
from stacks.lake.stack import LakeStack
from tests.stacks.one_stack import lake_with, templates_of
from tributary.contract.aws_names import Output
from tributary.contract.erasure import ERASURES_FOLDER
from tributary.contract.table_name import TableName
from tributary.tickit.schema import TABLES, TickitTable

KMS = '[aws.storage]\nencryption = "kms"'
DELETABLE = 'on_destroy = "delete"\ndelete_data_of = "shop"'
READER = "arn:aws:iam::111122223333:role/analyst"
READERS = f'[aws.storage]\nreaders = ["{READER}"]'
DEMO = "[aws.database]\ndemo_schema = true"
DATA = ("bronze", "silver", "quarantine", "artifacts")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The lake stack's template, by what `[aws]` says."""
    return templates_of(LakeStack, tmp_path_factory)


def buckets(template: Template) -> dict[str, Mapping[str, Any]]:
    """By the part of the name that says what is in it."""
    found = template.find_resources("AWS::S3::Bucket").values()
    return {_text(bucket["Properties"]["BucketName"]).split("-")[1]: bucket for bucket in found}


def _text(value: Any) -> str:
    """A text of a template; what it refers to is in angle brackets."""
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return str(separator.join(map(_text, parts)))
    return f"<{value.get('Ref') or '.'.join(value['Fn::GetAtt'])}>"


def test_a_buckets_name_says_lake_content_account_and_region(lake: Any) -> None:
    names = {_text(bucket["Properties"]["BucketName"]) for bucket in buckets(lake()).values()}
    assert names == {f"shop-{content}-<AWS::AccountId>-eu-west-1" for content in (*DATA, "logs")}


def test_no_bucket_can_be_made_public_or_owned_by_others(lake: Any) -> None:
    for bucket in buckets(lake()).values():
        assert set(bucket["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}
        (rule,) = bucket["Properties"]["OwnershipControls"]["Rules"]
        assert rule["ObjectOwnership"] == "BucketOwnerEnforced"


def test_every_bucket_refuses_requests_without_tls(lake: Any) -> None:
    policies = lake().find_resources("AWS::S3::BucketPolicy").values()
    assert len(policies) == 5
    for policy in policies:
        refused = [
            statement["Condition"]
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            if statement["Effect"] == "Deny" and statement["Action"] == "s3:*"
        ]
        assert {"Bool": {"aws:SecureTransport": "false"}} in refused
        assert {"NumericLessThan": {"s3:TlsVersion": 1.2}} in refused


@pytest.mark.parametrize("content", DATA)
def test_a_deletion_in_a_bucket_of_data_can_be_undone_for_a_week(lake: Any, content: str) -> None:
    properties = buckets(lake())[content]["Properties"]
    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    undo = next(rule for rule in properties["LifecycleConfiguration"]["Rules"] if rule["Id"] == "Undo")
    assert undo["NoncurrentVersionExpiration"] == {"NoncurrentDays": 7}
    assert undo["ExpiredObjectDeleteMarker"] is True


def test_parts_of_uploads_that_were_broken_off_go(lake: Any) -> None:
    for bucket in buckets(lake()).values():
        rules = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
        assert any(rule.get("AbortIncompleteMultipartUpload") for rule in rules)


def test_bronze_goes_to_a_colder_class_that_can_still_be_read_at_once(lake: Any) -> None:
    rules = buckets(lake('[aws.storage]\nbronze_cold_after = "30d"'))["bronze"]["Properties"]
    (colder,) = [rule for rule in rules["LifecycleConfiguration"]["Rules"] if "Transitions" in rule]
    assert colder["Transitions"] == [{"StorageClass": "GLACIER_IR", "TransitionInDays": 30}]


def test_no_event_of_bronze_and_no_row_of_silver_ever_expires(lake: Any) -> None:
    for content in ("bronze", "silver", "quarantine"):
        rules = buckets(lake())[content]["Properties"]["LifecycleConfiguration"]["Rules"]
        expiring = [rule.get("Prefix") for rule in rules if "ExpirationInDays" in rule]
        assert expiring == (["_erasures/"] if content == "quarantine" else [])


def test_keys_that_an_erasure_has_left_expire_with_their_versions(lake: Any) -> None:
    rules = buckets(lake())["quarantine"]["Properties"]["LifecycleConfiguration"]["Rules"]
    (rule,) = [rule for rule in rules if rule.get("Prefix") == f"{ERASURES_FOLDER}/"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", 1)
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}


def test_logs_expire_when_the_lake_file_says(lake: Any) -> None:
    (rule,) = buckets(lake('[aws.storage]\nlogs_kept = "14d"'))["logs"]["Properties"][
        "LifecycleConfiguration"
    ]["Rules"]
    assert rule["ExpirationInDays"] == 14


@pytest.mark.parametrize("content", DATA)
def test_every_request_to_a_bucket_of_data_is_logged(lake: Any, content: str) -> None:
    logging = buckets(lake())[content]["Properties"]["LoggingConfiguration"]
    assert logging["LogFilePrefix"] == f"access/{content}/"


def test_with_kms_one_key_of_the_lake_encrypts_all_but_the_logs(lake: Any) -> None:
    (key,) = lake(KMS).find_resources("AWS::KMS::Key")
    for content, bucket in buckets(lake(KMS)).items():
        (rule,) = bucket["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        if content == "logs":
            assert rule == {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
        else:
            assert rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"] == {"Fn::GetAtt": [key, "Arn"]}
            assert rule["BucketKeyEnabled"] is True


def test_the_key_is_renewed_every_year(lake: Any) -> None:
    lake(KMS).has_resource_properties("AWS::KMS::Key", {"EnableKeyRotation": True})


def test_without_kms_there_is_no_key_to_pay_for(lake: Any) -> None:
    lake().resource_count_is("AWS::KMS::Key", 0)


HOLDS_DATA = ("AWS::S3::Bucket", "AWS::Glue::Database")


@pytest.mark.parametrize("kind", HOLDS_DATA)
@pytest.mark.parametrize(
    ("aws", "deleted", "replaced"),
    [("", "RetainExceptOnCreate", "Retain"), (DELETABLE, "Delete", "Delete")],
)
def test_what_holds_data_stays_unless_two_settings_agree_that_it_goes(
    lake: Any, kind: str, aws: str, deleted: str, replaced: str
) -> None:
    for resource in lake(aws).find_resources(kind).values():
        assert resource["DeletionPolicy"] == deleted
        assert resource["UpdateReplacePolicy"] == replaced


def test_a_bucket_is_emptied_only_where_data_may_be_deleted(lake: Any) -> None:
    lake().resource_count_is("Custom::S3AutoDeleteObjects", 0)
    lake(DELETABLE).resource_count_is("Custom::S3AutoDeleteObjects", 5)


@pytest.mark.parametrize("layer", ["bronze", "silver"])
def test_the_catalog_has_a_database_for_each_layer(lake: Any, layer: str) -> None:
    found = [
        database["Properties"]["DatabaseInput"]
        for database in lake().find_resources("AWS::Glue::Database").values()
    ]
    (database,) = [database for database in found if database["Name"] == f"shop_{layer}"]
    assert _text(database["LocationUri"]).startswith(f"s3://<{layer.title()}")


def test_users_of_the_workgroup_cannot_change_where_results_go_and_what_a_query_may_scan(lake: Any) -> None:
    template = lake("[aws.storage]\nscan_limit_gb = 5")
    (workgroup,) = template.find_resources("AWS::Athena::WorkGroup").values()
    configuration = workgroup["Properties"]["WorkGroupConfiguration"]
    assert workgroup["Properties"]["Name"] == "tributary-shop"
    assert configuration["EnforceWorkGroupConfiguration"] is True
    assert configuration["PublishCloudWatchMetricsEnabled"] is True
    assert configuration["BytesScannedCutoffPerQuery"] == 5_000_000_000


@pytest.mark.parametrize(("aws", "option"), [("", "SSE_S3"), (KMS, "SSE_KMS")])
def test_results_of_queries_are_encrypted_and_expire(lake: Any, aws: str, option: str) -> None:
    (workgroup,) = lake(aws).find_resources("AWS::Athena::WorkGroup").values()
    results = workgroup["Properties"]["WorkGroupConfiguration"]["ResultConfiguration"]
    assert results["EncryptionConfiguration"]["EncryptionOption"] == option
    assert results["ExpectedBucketOwner"] == {"Ref": "AWS::AccountId"}
    folder = _text(results["OutputLocation"]).rpartition(">/")[2]
    rules = buckets(lake(aws))["artifacts"]["Properties"]["LifecycleConfiguration"]["Rules"]
    (expiring,) = [rule for rule in rules if rule.get("Prefix") == folder]
    assert expiring["ExpirationInDays"] == 7


def test_queries_are_saved_only_where_the_demos_tables_are(lake: Any) -> None:
    lake().resource_count_is("AWS::Athena::NamedQuery", 0)
    saved = lake(DEMO).find_resources("AWS::Athena::NamedQuery").values()
    assert {query["Properties"]["WorkGroup"] for query in saved} == {"tributary-shop"}
    assert len(saved) == len(list(demo_queries(lake_with(DEMO)))) > 0


@pytest.mark.parametrize("more", ["", '[table."web.public.sales"]\ndeletes = "soft"'])
def test_every_saved_query_runs_over_the_tables_as_the_catalog_names_them(more: str) -> None:
    """DuckDB takes the part of SQL that the queries use as Athena does."""
    lake = lake_with(DEMO, more=more)
    with duckdb.connect() as database:
        database.execute(f"CREATE SCHEMA {lake.names.glue_database}")
        for table in TABLES:
            name = lake.names.glue_table(TableName("web", "public", table.name))
            _make(database, table, f"{lake.names.glue_database}.{name}")
        for query in demo_queries(lake):
            assert database.execute(query.sql).description


def test_a_saved_query_leaves_out_rows_that_a_soft_delete_has_kept() -> None:
    soft = lake_with(DEMO, more='[table."web.public.sales"]\ndeletes = "soft"')
    (newest,) = [query.sql for query in demo_queries(soft) if query.id == "NewestSalesOfWeb"]
    assert '(SELECT * FROM "shop_silver"."web__public__sales" WHERE NOT coalesce(_deleted, false))' in newest
    assert 'JOIN "shop_silver"."web__public__event"' in newest


def _make(database: duckdb.DuckDBPyConnection, table: TickitTable, name: str) -> None:
    ddl = re.sub(r" REFERENCES \w+( ON UPDATE CASCADE)?", "", table.ddl).replace("jsonb", "varchar")
    database.execute(ddl.replace(f"CREATE TABLE {table.name}", f"CREATE TABLE {name}"))
    for column in (
        "_op varchar",
        "_source_ts timestamp",
        "_topic varchar",
        "_offset bigint",
        "_deleted boolean",
    ):
        database.execute(f"ALTER TABLE {name} ADD COLUMN {column}")


def test_readers_get_select_on_the_silver_tables_and_nothing_more(lake: Any) -> None:
    grants = [
        grant["Properties"]
        for grant in lake(READERS).find_resources("AWS::LakeFormation::PrincipalPermissions").values()
    ]
    assert {grant["Principal"]["DataLakePrincipalIdentifier"] for grant in grants} == {READER}
    assert {tuple(grant["Permissions"]) for grant in grants} == {("DESCRIBE",), ("DESCRIBE", "SELECT")}
    assert not any(grant["PermissionsWithGrantOption"] for grant in grants)
    lake(READERS).has_resource_properties(
        "AWS::LakeFormation::PrincipalPermissions",
        {"Resource": {"Table": Match.object_like({"DatabaseName": "shop_silver", "TableWildcard": {}})}},
    )


def test_without_readers_lake_formation_is_left_alone(lake: Any) -> None:
    lake().resource_count_is("AWS::LakeFormation::PrincipalPermissions", 0)


def test_the_outputs_name_what_jobs_and_people_ask_for(lake: Any) -> None:
    outputs = lake().find_outputs("*")
    assert outputs[Output.GLUE_DATABASE]["Value"] == "shop_silver"
    assert outputs[Output.ATHENA_WORKGROUP]["Value"] == "tributary-shop"
    for key, content in {
        Output.BRONZE: "Bronze",
        Output.SILVER: "Silver",
        Output.QUARANTINE: "Quarantine",
        Output.LOGS: "Logs",
    }.items():
        assert _text(outputs[key]["Value"]).startswith(f"s3://<{content}")

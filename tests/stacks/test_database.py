"""The database stack: clusters fit for replication, prepared before anybody needs them; and existing ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Match, Template
from constructs import Construct

from connectors.certificates import PEM
from connectors.deployment import DatabaseAccess
from connectors.engines.postgres.preparation import setup_script, setup_statements
from connectors.engines.postgres.prepared_check import missing_preparation_query
from stacks.database.secrets import ADMIN
from stacks.database.stack import DatabaseStack
from stacks.functions.bootstrap.preparation import Preparation
from stacks.network import NetworkStack
from tests.postgres_source import postgres_source
from tests.stacks.conftest import FLAGS
from tests.stacks.one_stack import lake_with, template_of
from tributary.contract.lake import Lake, LakeFileError

SECOND = """
[source.web_shop]
engine = "postgres"
database = "second"
tables = ["public.*"]
"""
EXISTING = """
[aws.source.web]
host = "webshop.example.org"
port = 5433
secret = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:team/webshop-debezium-AbCdEf"
sslmode = "prefer"
"""
DELETABLE = 'on_destroy = "delete"\ndelete_data_of = "shop"'
KMS = '[aws.storage]\nencryption = "kms"'


def database_template(lake: Lake, folder: Path) -> Template:
    return template_of(lambda app: DatabaseStack(app, lake, NetworkStack(app, lake)), folder)


def database_stack(lake: Lake, folder: Path) -> DatabaseStack:
    app = App(outdir=str(folder), context=FLAGS)
    return DatabaseStack(app, lake, NetworkStack(app, lake))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return database_template(lake_with(), tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return database_template(lake_with('profile = "production"'), tmp_path_factory.mktemp("production"))


@pytest.fixture(scope="module")
def deletable(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return database_template(lake_with(DELETABLE), tmp_path_factory.mktemp("deletable"))


def resources(template: Template, kind: str) -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = template.find_resources(kind)
    return found


def the(template: Template, kind: str) -> Mapping[str, Any]:
    (resource,) = resources(template, kind).values()
    return resource


def preparation_in(template: Template) -> Preparation:
    return Preparation.from_json(
        the(template, "Custom::TributaryPreparedDatabase")["Properties"]["Preparation"]
    )


def test_the_cluster_replicates_logically_and_gives_up_a_slot_before_it_fills_the_volume(
    small: Template,
) -> None:
    parameters = the(small, "AWS::RDS::DBClusterParameterGroup")["Properties"]["Parameters"]
    assert parameters["rds.logical_replication"] == "1"
    # Nobody knows whether Aurora has it, and an unknown parameter fails the deployment.
    assert "max_slot_wal_keep_size" not in parameters
    assert int(parameters["max_wal_senders"]) >= int(parameters["max_replication_slots"]) >= 10


def test_nobody_logs_in_without_tls(small: Template) -> None:
    assert the(small, "AWS::RDS::DBClusterParameterGroup")["Properties"]["Parameters"]["rds.force_ssl"] == "1"


def test_the_data_api_is_on_and_iam_may_log_in(small: Template) -> None:
    small.has_resource_properties(
        "AWS::RDS::DBCluster", {"EnableHttpEndpoint": True, "EnableIAMDatabaseAuthentication": True}
    )


def test_the_cheapest_cluster_is_one_serverless_instance(small: Template) -> None:
    assert the(small, "AWS::RDS::DBInstance")["Properties"]["DBInstanceClass"] == "db.serverless"
    capacity = the(small, "AWS::RDS::DBCluster")["Properties"]["ServerlessV2ScalingConfiguration"]
    assert capacity == {"MinCapacity": 0.5, "MaxCapacity": 4}


def test_in_production_a_reader_takes_over_from_the_writer(production: Template) -> None:
    instances = [each["Properties"] for each in resources(production, "AWS::RDS::DBInstance").values()]
    assert {each["DBInstanceClass"] for each in instances} == {"db.r7g.large"}
    assert sorted(each["PromotionTier"] for each in instances) == [0, 2]
    assert "ServerlessV2ScalingConfiguration" not in the(production, "AWS::RDS::DBCluster")["Properties"]


def test_a_serverless_reader_grows_with_the_writer_it_takes_over_from(tmp_path: Path) -> None:
    template = database_template(lake_with("[aws.database]\nreaders = 2"), tmp_path)
    tiers = [
        each["Properties"]["PromotionTier"] for each in resources(template, "AWS::RDS::DBInstance").values()
    ]
    assert sorted(tiers) == [0, 1, 2]


def test_backups_are_kept_for_as_long_as_asked(production: Template) -> None:
    production.has_resource_properties(
        "AWS::RDS::DBCluster", {"BackupRetentionPeriod": 14, "CopyTagsToSnapshot": True}
    )


def test_each_source_has_a_cluster_of_its_own(tmp_path: Path) -> None:
    template = database_template(lake_with(more=SECOND), tmp_path)
    clusters = [each["Properties"] for each in resources(template, "AWS::RDS::DBCluster").values()]
    assert {(each["DBClusterIdentifier"], each["DatabaseName"]) for each in clusters} == {
        ("tributary-shop-web", "webshop"),
        ("tributary-shop-web-shop", "second"),
    }
    template.resource_count_is("AWS::Lambda::Function", 1)
    template.resource_count_is("Custom::TributaryPreparedDatabase", 2)


def test_only_debezium_and_the_rotation_reach_the_database(small: Template) -> None:
    group = the(small, "AWS::EC2::SecurityGroup")["Properties"]
    assert "SecurityGroupIngress" not in group
    assert [rule["CidrIp"] for rule in group["SecurityGroupEgress"]] == ["255.255.255.255/32"]
    rules = [each["Properties"] for each in resources(small, "AWS::EC2::SecurityGroupIngress").values()]
    assert {(rule["FromPort"], rule["ToPort"]) for rule in rules} == {(5432, 5432)}
    sources = sorted(json.dumps(rule["SourceSecurityGroupId"]) for rule in rules)
    assert ["Debezium" in sources[0], "Functions" in sources[1]] == [True, True]


def test_the_instances_are_in_the_private_subnets_and_nowhere_else(small: Template) -> None:
    assert the(small, "AWS::RDS::DBInstance")["Properties"]["PubliclyAccessible"] is False
    subnets = the(small, "AWS::RDS::DBSubnetGroup")["Properties"]["SubnetIds"]
    assert ["Private" in json.dumps(subnet) for subnet in subnets] == [True, True]


def test_all_is_encrypted_with_keys_of_aws_s_own(small: Template) -> None:
    small.resource_count_is("AWS::KMS::Key", 0)
    small.has_resource_properties(
        "AWS::RDS::DBCluster", {"StorageEncrypted": True, "KmsKeyId": Match.absent()}
    )


def test_in_production_all_is_encrypted_with_the_lake_s_key(production: Template) -> None:
    (key,) = resources(production, "AWS::KMS::Key")
    arn = {"Fn::GetAtt": [key, "Arn"]}
    for kind, name in (
        ("AWS::RDS::DBCluster", "KmsKeyId"),
        ("AWS::RDS::DBInstance", "PerformanceInsightsKMSKeyId"),
        ("AWS::SecretsManager::Secret", "KmsKeyId"),
    ):
        assert [each["Properties"][name] for each in resources(production, kind).values()] == [arn, arn][
            : len(resources(production, kind))
        ]
    production.has_resource_properties(
        "AWS::Logs::LogGroup",
        {"LogGroupName": "/aws/rds/cluster/tributary-shop-web/postgresql", "KmsKeyId": arn},
    )


def test_the_log_group_is_there_before_the_cluster_would_make_it(small: Template) -> None:
    groups = resources(small, "AWS::Logs::LogGroup")
    (group,) = (name for name, each in groups.items() if "/aws/rds/" in each["Properties"]["LogGroupName"])
    assert groups[group]["Properties"]["RetentionInDays"] == 90
    assert group in the(small, "AWS::RDS::DBCluster")["DependsOn"]
    small.has_resource_properties("AWS::RDS::DBCluster", {"EnableCloudwatchLogsExports": ["postgresql"]})


def test_the_administrator_s_password_is_made_up_and_rotated(small: Template) -> None:
    rotation = the(small, "AWS::SecretsManager::RotationSchedule")["Properties"]
    assert rotation["HostedRotationLambda"]["RotationType"] == "PostgreSQLSingleUser"
    assert rotation["RotationRules"] == {"ScheduleExpression": "rate(30 days)"}
    for secret in resources(small, "AWS::SecretsManager::Secret").values():
        assert "GenerateSecretString" in secret["Properties"]
        assert "SecretString" not in secret["Properties"]


def test_the_password_is_not_rotated_while_the_database_is_prepared(small: Template) -> None:
    (prepared,) = resources(small, "Custom::TributaryPreparedDatabase")
    assert prepared in the(small, "AWS::SecretsManager::RotationSchedule")["DependsOn"]


def test_the_administrator_s_name_is_one_that_rds_takes(small: Template) -> None:
    assert ADMIN.isalnum()
    assert len(ADMIN) <= 16
    small.has_resource_properties(
        "AWS::SecretsManager::Secret",
        {"GenerateSecretString": {"SecretStringTemplate": f'{{"username":"{ADMIN}"}}'}},
    )


def test_debezium_s_password_needs_no_escape(small: Template) -> None:
    small.has_resource_properties(
        "AWS::SecretsManager::Secret",
        {
            "Name": "tributary/shop/web/replication",
            "GenerateSecretString": {
                "ExcludePunctuation": True,
                "GenerateStringKey": "password",
                "SecretStringTemplate": '{"username": "tributary_shop__web"}',
            },
        },
    )


def test_a_database_stays_with_all_that_it_needs(production: Template) -> None:
    for kind in (
        "AWS::RDS::DBCluster",
        "AWS::RDS::DBInstance",
        "AWS::RDS::DBSubnetGroup",
        "AWS::RDS::DBClusterParameterGroup",
        "AWS::EC2::SecurityGroup",
        "AWS::KMS::Key",
    ):
        policies = {each["DeletionPolicy"] for each in resources(production, kind).values()}
        assert policies == {"RetainExceptOnCreate"}, kind
    (admin,) = (
        each
        for each in resources(production, "AWS::SecretsManager::Secret").values()
        if "Name" not in each["Properties"]
    )
    assert admin["DeletionPolicy"] == "RetainExceptOnCreate"


def test_a_database_is_protected_once_the_lake_file_says_so(production: Template, tmp_path: Path) -> None:
    """CloudFormation could not roll back the creation of a protected cluster."""
    protected = database_template(lake_with("protected = true"), tmp_path)
    found = [
        the(template, "AWS::RDS::DBCluster")["Properties"]["DeletionProtection"]
        for template in (production, protected)
    ]
    assert found == [False, True]


def test_a_database_goes_where_two_settings_agree_on_it(deletable: Template) -> None:
    policies = {each.get("DeletionPolicy", "Delete") for each in deletable.to_json()["Resources"].values()}
    assert policies == {"Delete"}
    assert the(deletable, "AWS::RDS::DBCluster")["Properties"]["DeletionProtection"] is False


def test_the_database_is_prepared_by_the_very_sql_that_prepares_it_locally(small: Template) -> None:
    lake = lake_with()
    assert preparation_in(small).setup == setup_statements(lake, postgres_source(lake))
    assert preparation_in(small).has_demo is False


def test_the_template_is_ascii_where_names_are_not(tmp_path: Path) -> None:
    more = '[source.polish]\nengine = "postgres"\ndatabase = "b"\ntables = ["łódź.*"]\n'
    template = database_template(lake_with(more=more), tmp_path)
    properties = [
        each["Properties"]["Preparation"]
        for each in resources(template, "Custom::TributaryPreparedDatabase").values()
    ]
    assert all(text.isascii() for text in properties)
    assert any("łódź" in statement for text in properties for statement in Preparation.from_json(text).setup)


def test_the_demo_s_tables_are_made_where_asked_for(tmp_path: Path) -> None:
    template = database_template(lake_with("[aws.database]\ndemo_schema = true"), tmp_path)
    assert preparation_in(template).has_demo is True


def test_the_database_is_prepared_once_it_answers_and_the_function_may_ask(small: Template) -> None:
    waits_for = the(small, "Custom::TributaryPreparedDatabase")["DependsOn"]
    (instance,) = resources(small, "AWS::RDS::DBInstance")
    (policy,) = (name for name in resources(small, "AWS::IAM::ManagedPolicy") if "Bootstrap" in name)
    assert {instance, policy} <= set(waits_for)


def test_new_tables_are_looked_for_with_the_same_properties_as_at_the_deployment(small: Template) -> None:
    prepared = the(small, "Custom::TributaryPreparedDatabase")["Properties"]
    schedule = the(small, "AWS::Scheduler::Schedule")["Properties"]
    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    parts = schedule["Target"]["Input"]["Fn::Join"][1]
    request = json.loads("".join(part if isinstance(part, str) else "TOKEN" for part in parts))
    assert set(request) == set(prepared) - {"ServiceToken", "ServiceTimeout"}
    assert request["Preparation"] == prepared["Preparation"]


def test_the_function_may_ask_this_database_and_read_its_secrets_and_nothing_else(small: Template) -> None:
    policies = {
        name: each["Properties"]["PolicyDocument"]["Statement"]
        for name, each in resources(small, "AWS::IAM::ManagedPolicy").items()
    }
    statements = [statement for each in policies.values() for statement in each]
    actions = {action for each in statements for action in _listed(each["Action"])}
    assert actions == {
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "rds-data:BeginTransaction",
        "rds-data:CommitTransaction",
        "rds-data:ExecuteStatement",
        "rds-data:RollbackTransaction",
        "rds:ModifyDBClusterParameterGroup",
        "secretsmanager:GetSecretValue",
        "lambda:InvokeFunction",
    }
    assert "*" not in json.dumps([each["Resource"] for each in statements])
    small.resource_count_is("AWS::IAM::Policy", 0)


def test_the_function_is_in_no_vpc_and_runs_on_the_newest_python(small: Template) -> None:
    small.has_resource_properties(
        "AWS::Lambda::Function",
        {
            "Runtime": "python3.14",
            "VpcConfig": Match.absent(),
            "Handler": "stacks.functions.bootstrap.main.handle",
        },
    )


def test_a_region_whose_roots_are_unknown_is_not_verified(tmp_path: Path) -> None:
    stack = database_stack(lake_with(region="il-central-1"), tmp_path)
    assert stack.access["web"].options == {"database.sslmode": "require"}


def test_debezium_is_told_the_endpoint_and_where_the_password_is(tmp_path: Path) -> None:
    stack = database_stack(lake_with(), tmp_path)
    access = stack.access["web"]
    assert (access.port, access.user) == (5432, "tributary_shop__web")
    assert access.options == {"database.sslmode": "verify-full", "database.sslrootcert": PEM}
    assert access.password.placeholder == "${secretsmanager:tributary/shop/web/replication:password}"
    assert Stack.of(stack).resolve(access.host)["Fn::GetAtt"][1] == "Endpoint.Address"
    assert set(stack.secrets) == set(stack.ready) == {"web"}


def test_an_existing_database_is_only_pointed_at(tmp_path: Path) -> None:
    stack = database_stack(lake_with(more=EXISTING), tmp_path)
    access = stack.access["web"]
    assert access == DatabaseAccess(
        host="webshop.example.org",
        port=5433,
        user="tributary_shop__web",
        password=access.password,
        options={"database.sslmode": "prefer"},
    )
    assert access.password.placeholder == "${secretsmanager:team/webshop-debezium:password}"
    assert stack.own == {}


def test_the_check_may_decrypt_a_secret_with_a_key_of_the_account(tmp_path: Path) -> None:
    def decrypts(more: str) -> list[Any]:
        policies = database_template(lake_with(more=more), tmp_path).find_resources("AWS::IAM::ManagedPolicy")
        return [
            statement["Resource"]
            for policy in policies.values()
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            if statement["Action"] == "kms:Decrypt"
        ]

    key = "arn:aws:kms:eu-west-1:111122223333:key/0a1b2c3d-0000-1111-2222-3333aaaa5555"
    assert decrypts(EXISTING) == []
    assert decrypts(f'{EXISTING}secret_key = "{key}"\n') == [key]


def test_the_connectors_wait_until_an_existing_database_is_checked(tmp_path: Path) -> None:
    lake = lake_with(more=EXISTING)
    stack = database_stack(lake, tmp_path)
    (check,) = Template.from_stack(stack).find_resources("Custom::TributaryCheckedDatabase").values()
    properties = check["Properties"]
    assert (properties["Host"], properties["Port"]) == ("webshop.example.org", "5433")
    assert properties["User"] == "tributary_shop__web"
    assert properties["Query"] == missing_preparation_query(lake, postgres_source(lake))
    assert "-f cdk.out/web.sql" in properties["Remedy"]
    ready = stack.databases["web"].ready
    assert isinstance(ready, Construct)
    assert "Checked" in {child.node.id for child in ready.node.find_all()}


def test_the_sql_for_an_existing_database_is_beside_the_templates_and_an_output_tells_how(
    tmp_path: Path,
) -> None:
    lake = lake_with(more=EXISTING)
    template = database_template(lake, tmp_path)
    assert (tmp_path / "web.sql").read_text() == setup_script(lake, postgres_source(lake))
    (output,) = template.find_outputs("WebSql").values()
    assert output["Value"] == "psql -h webshop.example.org -p 5433 -d webshop -f cdk.out/web.sql"


def test_existing_and_own_databases_go_together(tmp_path: Path) -> None:
    template = database_template(lake_with(more=EXISTING + SECOND), tmp_path)
    template.resource_count_is("AWS::RDS::DBCluster", 1)
    assert preparation_in(template).role == "tributary_shop__web_shop"


@pytest.mark.parametrize(
    ("aws", "more", "complaint"),
    [
        ('[aws.database]\ninstance = "db.t4g.medium"', "", r"\[aws\.database\]\.instance.*no Data API"),
        ("[aws.database]\ncapacity_min = 8", "", r"\[aws\.database\].*not above capacity_max"),
        ("[aws.database]\ncapacity_max = 1.3", "", r"\[aws\.database\]\.capacity_max"),
        ("", SECOND.replace('"second"', '"web-shop"'), r"\[source\.web_shop\]\.database.*Aurora"),
        ("", SECOND.replace("web_shop", "w_eb"), r"\[source\.w_eb\].*underscores.*beside web"),
        ("[aws.database]\nslot_wal_gb = 5", "", r"\[aws\.alarms\]\.slot_lag_gb.*less than .*slot_wal_gb, 5"),
        ("", EXISTING.replace("eu-west-1", "eu-west-2"), r"\[aws\.source\.web\]\.secret.*another region"),
    ],
)
def test_a_database_that_could_not_be_prepared_or_read_is_refused(
    aws: str, more: str, complaint: str
) -> None:
    with pytest.raises(LakeFileError, match=complaint):
        lake_with(aws, more=more)


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value

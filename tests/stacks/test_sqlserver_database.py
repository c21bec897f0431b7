"""The lake's own SQL Server: what it is, who reaches it, how it is prepared, and what watches it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from stacks.cost import charges
from stacks.functions.sqlserver_bootstrap.main import AGE, UNRECORDED
from stacks.functions.sqlserver_bootstrap.preparation import PASSWORD, SqlServerPreparation
from stacks.picture import as_mermaid
from stacks.synthesized import rendered
from tests.stacks.conftest import Synthesized
from tests.stacks.one_stack import lake_with
from tributary.contract.lake import LakeFileError

OWN, PRODUCTION = "rds-sql-server", "rds-sql-server-in-production"
NAME = "tributary-shop-erp"


def _resources(
    synthesized: Synthesized, settings: str, kind: str, stack: str = "Database"
) -> dict[str, dict[str, Any]]:
    found = synthesized(settings).templates[stack]["Resources"]
    return {name: resource["Properties"] for name, resource in found.items() if resource["Type"] == kind}


def _instance(synthesized: Synthesized, settings: str) -> dict[str, Any]:
    (found,) = (
        each
        for each in _resources(synthesized, settings, "AWS::RDS::DBInstance").values()
        if each.get("DBInstanceIdentifier") == NAME
    )
    return found


def _prepared(synthesized: Synthesized, settings: str = OWN) -> dict[str, Any]:
    (found,) = (
        each
        for each in _resources(synthesized, settings, "Custom::TributaryPreparedSqlServer").values()
        if each["Database"] == "ERP"
    )
    return found


def test_the_cheapest_instance_has_an_edition_with_cdc_and_a_licence_and_no_database_yet(
    synthesized: Synthesized,
) -> None:
    instance = _instance(synthesized, OWN)
    assert (instance["Engine"], instance["EngineVersion"]) == ("sqlserver-se", "16.00.4236.2.v1")
    assert (instance["LicenseModel"], instance["DBInstanceClass"]) == ("license-included", "db.m5.xlarge")
    assert (instance["StorageType"], instance["AllocatedStorage"]) == ("gp3", "20")
    assert (instance["MaxAllocatedStorage"], instance["MultiAZ"]) == (200, False)
    assert "DBName" not in instance


def test_in_production_a_standby_takes_over_and_the_lakes_key_encrypts(synthesized: Synthesized) -> None:
    instance = _instance(synthesized, PRODUCTION)
    assert (instance["Engine"], instance["MultiAZ"]) == ("sqlserver-ee", True)
    assert (instance["BackupRetentionPeriod"], instance["AllocatedStorage"]) == (14, "100")
    assert "MaxAllocatedStorage" not in instance
    assert instance["KmsKeyId"] == instance["PerformanceInsightsKMSKeyId"]
    (key,) = _resources(synthesized, PRODUCTION, "AWS::KMS::Key").values()
    groups = [
        rendered(group).partition(":log-group:")[2]
        for statement in key["KeyPolicy"]["Statement"]
        if "Condition" in statement and "ArnLike" in statement["Condition"]
        for group in statement["Condition"]["ArnLike"]["kms:EncryptionContext:aws:logs:arn"]
    ]
    assert groups == ["/aws/rds/cluster/tributary-shop-*", "/aws/rds/instance/tributary-shop-*"]


def test_nobody_logs_in_without_tls(synthesized: Synthesized) -> None:
    (group,) = (
        each
        for each in _resources(synthesized, OWN, "AWS::RDS::DBParameterGroup").values()
        if each["Family"] == "sqlserver-se-16.0"
    )
    assert group["Parameters"] == {"rds.force_ssl": "1"}


def test_its_logs_go_to_groups_that_end(synthesized: Synthesized) -> None:
    assert _instance(synthesized, OWN)["EnableCloudwatchLogsExports"] == ["error", "agent"]
    groups = {
        group["LogGroupName"]: group["RetentionInDays"]
        for group in _resources(synthesized, OWN, "AWS::Logs::LogGroup").values()
        if isinstance(group["LogGroupName"], str)
    }
    assert groups[f"/aws/rds/instance/{NAME}/error"] == 90
    assert groups[f"/aws/rds/instance/{NAME}/agent"] == 90


def test_only_clients_of_the_lake_reach_it(synthesized: Synthesized) -> None:
    from_clients = {
        each["Description"]
        for each in _resources(synthesized, OWN, "AWS::EC2::SecurityGroupIngress").values()
        if each["ToPort"] == 1433
    }
    assert from_clients == {"Debezium", "preparation, and rotation of the secret"}
    assert _instance(synthesized, OWN)["PubliclyAccessible"] is False


def test_debezium_gets_the_address_verifies_the_certificate_and_starts_after_the_preparation(
    synthesized: Synthesized,
) -> None:
    found = synthesized(OWN).templates["Connect"]["Resources"].values()
    (config,) = (
        one["Properties"]["ConnectorConfiguration"]
        for one in found
        if one["Type"] == "AWS::KafkaConnect::Connector" and "erp" in str(one["Properties"]["ConnectorName"])
    )
    assert "ErpInstance" in rendered(config["database.hostname"])
    assert (config["database.port"], config["database.user"]) == ("1433", "tributary_shop__erp")
    assert config["database.password"] == "${secretsmanager:tributary/shop/erp/replication:password}"
    assert config["driver.encrypt"] == "true"
    assert config["driver.trustServerCertificate"] == "false"
    assert config["driver.trustStore"] == "${certificates:rds:truststore}"


def test_in_a_region_with_unknown_roots_everybody_encrypts_but_nobody_verifies(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    prepared, config = _of_region("il-central-1", tmp_path_factory)
    assert prepared["SslMode"] == "required"
    assert config["driver.trustServerCertificate"] == "true"


def _of_region(region: str, folders: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, str]]:
    from aws_cdk import App

    from stacks.database.stack import DatabaseStack
    from stacks.network import NetworkStack
    from tests.stacks.conftest import FLAGS

    source = '[source.erp]\nengine = "sqlserver"\ndatabase = "ERP"\ntables = ["dbo.*"]\n'
    lake = lake_with(region=region, more=source)
    app = App(outdir=str(folders.mktemp("cdk")), context=FLAGS)
    stack = DatabaseStack(app, lake, NetworkStack(app, lake))
    template = app.synth().get_stack_by_name(stack.stack_name).template
    (prepared,) = (
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == "Custom::TributaryPreparedSqlServer"
    )
    return prepared, dict(stack.access["erp"].options)


def test_the_function_may_read_these_secrets_and_send_metrics_and_nothing_else(
    synthesized: Synthesized,
) -> None:
    (policy,) = (
        properties["PolicyDocument"]["Statement"]
        for name, properties in _resources(synthesized, OWN, "AWS::IAM::ManagedPolicy").items()
        if name.startswith("SqlServerBootstrapPolicy")
    )
    actions = {action for one in policy for action in _as_list(one["Action"])}
    assert {action for action in actions if not action.startswith("ec2:")} == {
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "secretsmanager:GetSecretValue",
        "cloudwatch:PutMetricData",
    }
    (reading,) = (one for one in policy if one["Action"] == "secretsmanager:GetSecretValue")
    secrets = [rendered(place) for place in _as_list(reading["Resource"])]
    assert len(secrets) == 2
    assert all(re.match(r"\{Erp(AdminSecret|ReplicationSecret)", secret) for secret in secrets)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_the_function_is_in_the_private_subnets_with_the_group_that_the_server_lets_in(
    synthesized: Synthesized,
) -> None:
    (function,) = (
        properties
        for name, properties in _resources(synthesized, OWN, "AWS::Lambda::Function").items()
        if name.startswith("SqlServerBootstrap")
    )
    assert function["Handler"] == "stacks.functions.sqlserver_bootstrap.main.handle"
    place = function["VpcConfig"]
    assert "Private" in rendered(place["SubnetIds"][0])
    assert [rendered(group) for group in place["SecurityGroupIds"]] == [
        rendered(each["SourceSecurityGroupId"])
        for each in _resources(synthesized, OWN, "AWS::EC2::SecurityGroupIngress").values()
        if each["Description"] == "preparation, and rotation of the secret"
    ]


def test_the_preparation_and_the_schedule_hold_the_sql_and_no_password(synthesized: Synthesized) -> None:
    prepared = _prepared(synthesized)
    sql = SqlServerPreparation.from_json(prepared["Preparation"])
    assert (sql.database, sql.user) == ("ERP", "tributary_shop__erp")
    assert sql.login == f"ALTER LOGIN [tributary_shop__erp] WITH PASSWORD = N'{PASSWORD}';"
    assert "msdb.dbo.rds_cdc_enable_db N'ERP'" in "".join(sql.setup)
    assert prepared["AdminUser"] == "lakeadmin"
    (schedule,) = (
        each
        for each in _resources(synthesized, OWN, "AWS::Scheduler::Schedule").values()
        if "erp" in each["Description"]
    )
    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    request = json.loads(rendered(schedule["Target"]["Input"]))
    assert "RequestType" not in request
    assert request["Preparation"] == prepared["Preparation"]
    assert (request["Lake"], request["Source"], request["SslMode"]) == ("shop", "erp", "verified")


def test_the_server_exists_before_it_is_prepared_and_the_password_rotates_afterwards(
    synthesized: Synthesized,
) -> None:
    found = synthesized(OWN).templates["Database"]["Resources"]
    (prepared,) = (name for name, one in found.items() if one["Type"] == "Custom::TributaryPreparedSqlServer")
    assert any(name.startswith("ErpInstance") for name in found[prepared]["DependsOn"])
    # At a deletion, the function reaches the server until it has cleaned up.
    ways = {name for name, one in found.items() if one["Type"] == "AWS::EC2::SecurityGroupIngress"}
    of_server = {name for name in ways if name.startswith("ErpSecurityGroup")}
    assert of_server
    assert of_server <= {*found[prepared]["DependsOn"]}
    assert any(name.startswith("SqlServerBootstrapPolicy") for name in found[prepared]["DependsOn"])
    (rotation,) = (
        one
        for name, one in found.items()
        if one["Type"] == "AWS::SecretsManager::RotationSchedule" and name.startswith("Erp")
    )
    assert prepared in rotation["DependsOn"]
    assert rotation["Properties"]["HostedRotationLambda"]["RotationType"] == "SQLServerSingleUser"


def test_a_lake_of_sql_server_alone_has_no_aurora(synthesized: Synthesized) -> None:
    assert not _resources(synthesized, "sql-server-alone", "AWS::RDS::DBCluster")
    assert len(_resources(synthesized, "sql-server-alone", "AWS::RDS::DBInstance")) == 1


def test_each_instance_has_its_alarms_and_an_existing_server_has_none(synthesized: Synthesized) -> None:
    alarms = {
        alarm["AlarmName"]: alarm
        for alarm in _resources(synthesized, OWN, "AWS::CloudWatch::Alarm", "Observability").values()
    }
    stopped = alarms["tributary-shop-capture-stopped-erp"]
    assert (stopped["MetricName"], stopped["Threshold"]) == (AGE, 900)
    assert stopped["TreatMissingData"] == "breaching"
    assert alarms["tributary-shop-table-not-captured-erp"]["MetricName"] == UNRECORDED
    storage = alarms["tributary-shop-database-storage-erp"]
    assert storage["Threshold"] == 2 * 1024**3
    # Amazon RDS enlarges a volume after five minutes with as little.
    assert (storage["DatapointsToAlarm"], storage["EvaluationPeriods"]) == (15, 20)
    assert storage["Dimensions"] == [{"Name": "DBInstanceIdentifier", "Value": NAME}]
    assert alarms["tributary-shop-database-cpu-erp"]["MetricName"] == "CPUUtilization"
    of_existing = _resources(synthesized, "sql-server", "AWS::CloudWatch::Alarm", "Observability")
    names = [alarm["AlarmName"] for alarm in of_existing.values()]
    assert {name for name in names if "erp" in name} == {
        "tributary-shop-connector-failed-tributary-shop-erp-debezium",
        "tributary-shop-connector-failed-tributary-shop-erp-debezium-stopped",
    }


def test_the_picture_leads_from_the_instance_to_its_connector(synthesized: Synthesized) -> None:
    picture = as_mermaid(synthesized(OWN).templates)
    assert f'["RDS SQL Server Standard 16.00.4236.2.v1<br/>{NAME}"]' in picture
    assert re.search(r"DatabaseErpInstance\w+ --> ConnectSourceerpConnector", picture)


def test_a_standby_costs_as_much_as_the_first_instance(synthesized: Synthesized) -> None:
    found = {
        charge.what: (charge.least, charge.most)
        for charge in charges(synthesized(PRODUCTION).templates)
        if charge.stack == "Database"
    }
    wanted = {"sqlserver-ee db.m5.2xlarge": (4, 4), "database-gigabyte": (400, 400)}
    assert {what: found[what] for what in wanted} == wanted
    cheapest = {charge.what: charge.most for charge in charges(synthesized(OWN).templates)}
    assert (cheapest["sqlserver-se db.m5.xlarge"], cheapest["database-gigabyte"]) == (1, 200)


@pytest.mark.parametrize("database", ["master", "RDSAdmin"])
def test_a_database_that_the_server_has_for_itself_is_refused(database: str) -> None:
    source = f'[source.erp]\nengine = "sqlserver"\ndatabase = "{database}"\ntables = ["dbo.*"]\n'
    with pytest.raises(LakeFileError, match=r"\[source\.erp\]\.database.*Amazon RDS"):
        lake_with(more=source)

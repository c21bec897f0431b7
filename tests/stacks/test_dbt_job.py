"""The dbt job: when it runs, what it runs, and what it may do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stacks.analytics.dbt_project import install_options, write_project
from stacks.synthesized import rendered
from tests.stacks.conftest import Synthesized
from tests.stacks.iam_statements import Statement, statements
from tributary.contract.errors import TributaryError

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "tickit-dbt"
ARTIFACTS = "arn:{AWS::Partition}:s3:::shop-artifacts-{AWS::AccountId}-us-east-1"
SILVER = "arn:{AWS::Partition}:s3:::shop-silver-{AWS::AccountId}-us-east-1"
GLUE = "arn:{AWS::Partition}:glue:us-east-1:{AWS::AccountId}"


def _only(synthesized: Synthesized, settings: str, kind: str) -> dict[str, Any]:
    resources = synthesized(settings).templates["Analytics"]["Resources"].values()
    (found,) = (resource["Properties"] for resource in resources if resource["Type"] == kind)
    assert isinstance(found, dict)
    return found


def _rights(synthesized: Synthesized, settings: str, policy: str) -> list[Statement]:
    found = statements({"Analytics": synthesized(settings).templates["Analytics"]})
    return [each for each in found if policy in each.holder and each.kind == "AWS::IAM::ManagedPolicy"]


def _build_spec(synthesized: Synthesized, settings: str) -> Mapping[str, Any]:
    found = json.loads(_only(synthesized, settings, "AWS::CodeBuild::Project")["Source"]["BuildSpec"])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("settings", ["small", "production", "items-alone"])
def test_a_lake_without_the_section_has_no_such_stack(synthesized: Synthesized, settings: str) -> None:
    assert "Analytics" not in synthesized(settings).texts


def test_the_schedule_is_that_of_the_lake_file(synthesized: Synthesized) -> None:
    daily = _only(synthesized, "dbt", "AWS::Scheduler::Schedule")
    assert (daily["ScheduleExpression"], daily["ScheduleExpressionTimezone"]) == ("cron(0 5 * * ? *)", "UTC")
    assert daily["FlexibleTimeWindow"] == {"Mode": "OFF"}
    other = _only(synthesized, "dbt-with-kms", "AWS::Scheduler::Schedule")
    assert (other["ScheduleExpression"], other["ScheduleExpressionTimezone"]) == (
        "rate(12 hours)",
        "Europe/Berlin",
    )


def test_the_scheduler_may_start_this_build_and_nothing_else(synthesized: Synthesized) -> None:
    (statement,) = _rights(synthesized, "dbt", "SchedulerPolicy")
    target = _only(synthesized, "dbt", "AWS::Scheduler::Schedule")["Target"]
    assert statement.actions == ("codebuild:StartBuild",)
    assert statement.resources == (rendered(target["Arn"]),)


def test_two_runs_never_overlap_and_a_run_ends(synthesized: Synthesized) -> None:
    daily = _only(synthesized, "dbt", "AWS::CodeBuild::Project")
    assert (daily["ConcurrentBuildLimit"], daily["TimeoutInMinutes"]) == (1, 60)
    assert _only(synthesized, "dbt-with-kms", "AWS::CodeBuild::Project")["TimeoutInMinutes"] == 30


def test_a_run_installs_pinned_packages_and_runs_the_commands_of_the_lake_file(
    synthesized: Synthesized,
) -> None:
    phases = _build_spec(synthesized, "dbt-with-kms")["phases"]
    (install,) = phases["install"]["commands"]
    assert install.endswith("--require-hashes --no-deps -r requirements.txt")
    assert phases["build"]["commands"] == [
        "cd project",
        "dbt --no-use-colors deps --target prod --profiles-dir .",
        "dbt --no-use-colors source freshness --target prod --profiles-dir .",
        "dbt --no-use-colors build --exclude tag:slow --target prod --profiles-dir .",
    ]


def test_the_job_sets_every_variable_that_the_example_reads_on_aws(synthesized: Synthesized) -> None:
    environment = _only(synthesized, "dbt", "AWS::CodeBuild::Project")["Environment"]
    variables = {each["Name"]: rendered(each["Value"]) for each in environment["EnvironmentVariables"]}
    bucket = "s3://shop-artifacts-{AWS::AccountId}-us-east-1"
    assert variables == {
        "TRIBUTARY_ATHENA_WORKGROUP": "tributary-shop-dbt",
        "TRIBUTARY_ATHENA_RESULTS": f"{bucket}/athena-results/dbt/",
        "TRIBUTARY_ATHENA_TABLES": f"{bucket}/dbt/tables/",
        "TRIBUTARY_DBT_DATABASE": "shop_dbt",
        "TRIBUTARY_SILVER_DATABASE": "shop_silver",
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }
    profile = (EXAMPLE / "profiles.yml").read_text().partition("    aws:\n")[2]
    read = profile + (EXAMPLE / "models" / "staging" / "sources.yml").read_text()
    names = set(re.findall(r"env_var\('(\w+)'", read))
    assert names - {"AWS_REGION"} == variables.keys() - {"DBT_SEND_ANONYMOUS_USAGE_STATS"}


def test_a_statement_may_write_where_it_says_because_results_expire_and_tables_must_not(
    synthesized: Synthesized,
) -> None:
    workgroup = _only(synthesized, "dbt", "AWS::Athena::WorkGroup")
    configuration = workgroup["WorkGroupConfiguration"]
    assert configuration["EnforceWorkGroupConfiguration"] is False
    assert "ResultConfiguration" not in configuration
    assert configuration["BytesScannedCutoffPerQuery"] == 100 * 10**9
    buckets = synthesized("dbt").templates["Lake"]["Resources"].values()
    expiring = {
        rule["Prefix"]
        for bucket in buckets
        if bucket["Type"] == "AWS::S3::Bucket" and "artifacts" in rendered(bucket["Properties"]["BucketName"])
        for rule in bucket["Properties"]["LifecycleConfiguration"]["Rules"]
        if "ExpirationInDays" in rule
    }
    assert expiring == {"athena-results/"}


def test_a_run_only_reads_silver_and_owns_one_database_and_two_folders(synthesized: Synthesized) -> None:
    rights = _rights(synthesized, "dbt", "DbtPolicy")
    changing = re.compile(r"(s3:(Put|Delete|Abort)|glue:(Create|Update|Delete|Batch(Create|Delete)))")
    changed = {
        resource
        for statement in rights
        if any(map(changing.match, statement.actions))
        for resource in statement.resources
    }
    assert changed == {
        f"{ARTIFACTS}/dbt/tables/*",
        f"{ARTIFACTS}/athena-results/dbt/*",
        f"{GLUE}:catalog",
        f"{GLUE}:database/shop_dbt",
        f"{GLUE}:table/shop_dbt/*",
    }
    objects = {
        resource
        for statement in rights
        if "s3:GetObject" in statement.actions
        for resource in statement.resources
        if "cdk-" not in resource
    }
    assert objects == {
        f"{SILVER}/*",
        f"{ARTIFACTS}/dbt/tables/*",
        f"{ARTIFACTS}/athena-results/dbt/*",
    }
    started = {
        resource
        for statement in rights
        if "athena:StartQueryExecution" in statement.actions
        for resource in statement.resources
    }
    assert started == {"arn:{AWS::Partition}:athena:us-east-1:{AWS::AccountId}:workgroup/tributary-shop-dbt"}


def test_a_run_may_use_the_lake_s_key_only_through_s3(synthesized: Synthesized) -> None:
    def of_keys(settings: str) -> list[Statement]:
        rights = _rights(synthesized, settings, "DbtPolicy")
        return [each for each in rights if any(action.startswith("kms:") for action in each.actions)]

    assert of_keys("dbt") == []
    of_lake, of_bootstrap = sorted(of_keys("dbt-with-kms"), key=lambda each: len(each.actions), reverse=True)
    assert of_lake.actions == ("kms:Decrypt", "kms:GenerateDataKey")
    assert of_bootstrap.actions == ("kms:Decrypt",)
    for statement in (of_lake, of_bootstrap):
        assert statement.content["Condition"] == {
            "StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}
        }


def test_with_lake_formation_a_run_gets_select_on_silver_and_owns_its_own_tables(
    synthesized: Synthesized,
) -> None:
    resources = synthesized("dbt").templates["Analytics"]["Resources"].values()
    grants = [
        each["Properties"] for each in resources if each["Type"] == "AWS::LakeFormation::PrincipalPermissions"
    ]
    on_tables = {
        grant["Resource"]["Table"]["DatabaseName"]: set(grant["Permissions"])
        for grant in grants
        if "Table" in grant["Resource"]
    }
    assert on_tables == {
        "shop_silver": {"DESCRIBE", "SELECT"},
        "shop_dbt": {"ALTER", "DELETE", "DESCRIBE", "DROP", "INSERT", "SELECT"},
    }


def test_a_run_s_log_is_kept_as_long_as_the_lake_s_other_logs(synthesized: Synthesized) -> None:
    log = _only(synthesized, "dbt", "AWS::Logs::LogGroup")
    assert (log["LogGroupName"], log["RetentionInDays"]) == ("/tributary/shop/dbt", 90)
    build = _only(synthesized, "dbt", "AWS::CodeBuild::Project")
    assert build["LogsConfig"]["CloudWatchLogs"]["Status"] == "ENABLED"
    assert "KmsKeyId" in _only(synthesized, "dbt-with-kms", "AWS::Logs::LogGroup")


def test_the_zip_has_the_project_without_what_dbt_has_made(tmp_path: Path) -> None:
    project = tmp_path / "warehouse"
    (project / "models").mkdir(parents=True)
    (project / "target").mkdir()
    for name in ("dbt_project.yml", "profiles.yml", "models/a.sql", "target/manifest.json", "w.duckdb"):
        (project / name).write_text(name)
    write_project(project, tmp_path / "out")
    files = {str(path.relative_to(tmp_path / "out")) for path in tmp_path.glob("out/**/*") if path.is_file()}
    assert files == {
        "requirements.txt",
        "project/dbt_project.yml",
        "project/profiles.yml",
        "project/models/a.sql",
    }
    requirements = (tmp_path / "out" / "requirements.txt").read_text()
    assert re.search(r"^dbt-athena==\S+ \\\n +--hash=sha256:", requirements, re.MULTILINE)


def test_a_project_s_own_requirements_are_installed_instead(tmp_path: Path) -> None:
    project = tmp_path / "warehouse"
    project.mkdir()
    for name in ("dbt_project.yml", "profiles.yml"):
        (project / name).write_text("")
    (project / "requirements.txt").write_text("dbt-athena==1.0\n")
    write_project(project, tmp_path / "out")
    assert (tmp_path / "out" / "requirements.txt").read_text() == "dbt-athena==1.0\n"
    assert install_options(project) == ""


@pytest.mark.parametrize("missing", ["dbt_project.yml", "profiles.yml"])
def test_a_folder_that_is_no_project_is_refused_with_the_file_that_is_missing(
    missing: str, tmp_path: Path
) -> None:
    project = tmp_path / "warehouse"
    project.mkdir()
    for name in {"dbt_project.yml", "profiles.yml"} - {missing}:
        (project / name).write_text("")
    with pytest.raises(TributaryError, match=re.escape(str(project / missing))) as caught:
        write_project(project, tmp_path / "out")
    assert caught.value.where == "[aws.dbt].project"


def test_the_example_s_project_can_be_taken(tmp_path: Path) -> None:
    write_project(EXAMPLE, tmp_path / "out")
    assert (tmp_path / "out" / "project" / "models" / "marts" / "fct_sales.sql").is_file()

"""An environment's own file changes entries of the lake file, and gives the lake a name of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.lake_files import lake_files, toml
from tributary.contract.aws_names import AwsNames, StackKind
from tributary.contract.environments import in_environment
from tributary.contract.lake import LakeFileError, parse_lake, read_content, read_lake

LAKE = """
[lake]
name = "shop"
[source.web]
engine = "postgres"
database = "webshop"
tables = ["public.*"]
[aws]
region = "eu-west-1"
[aws.kafka]
retention = "3d"
"""


@pytest.fixture
def lake_file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.toml"
    path.write_text(LAKE)
    return path


def _own(lake_file: Path, text: str, environment: str = "staging") -> None:
    lake_file.with_name(f"shop.{environment}.toml").write_text(text)


def test_an_environment_changes_what_its_file_says_and_nothing_else(lake_file: Path) -> None:
    _own(lake_file, '[aws]\naccount = "111122223333"\n[aws.kafka]\nstorage_gb = 20\n')
    plain, staging = read_lake(lake_file), read_lake(lake_file, "staging")
    assert (plain.name, staging.name) == ("shop", "shop-staging")
    assert plain.aws is not None
    assert staging.aws is not None
    assert staging.aws.account == "111122223333"
    assert (staging.aws.kafka.storage_gb, staging.aws.kafka.retention) == (20, plain.aws.kafka.retention)
    assert staging.sources == plain.sources


def test_no_two_environments_share_a_stack(lake_file: Path) -> None:
    _own(lake_file, "", "staging")
    _own(lake_file, "", "production")
    names = [read_lake(lake_file, each).name for each in (None, "staging", "production")]
    stacks = [stack for name in names for stack in AwsNames(name).stacks]
    assert len(stacks) == len(set(stacks)) == 3 * len(get_args(StackKind))


def test_an_environment_may_name_its_lake_itself(lake_file: Path) -> None:
    _own(lake_file, '[lake]\nname = "shop-next"\n')
    assert read_lake(lake_file, "staging").name == "shop-next"


@pytest.mark.parametrize(
    ("environment", "own", "message"),
    [
        ("qa", "", r"shop\.toml: the lake has no environment qa: expected the file shop\.qa\.toml"),
        ("Staging", "", r"cannot have this name: found Staging, expected 1 to 12 lower-case"),
        ("staging", "[aws", r"shop\.staging\.toml: the lake file is not TOML"),
        ("staging", "[aws]\nregoin = 1", r"shop\.toml with shop\.staging\.toml, entry .*regoin"),
        ("staging", '[lake]\nname = "Shop"', r"shop\.toml with shop\.staging\.toml, entry \[lake\]\.name"),
    ],
)
def test_a_mistake_names_the_file_to_look_at(
    lake_file: Path, environment: str, own: str, message: str
) -> None:
    _own(lake_file, own)
    with pytest.raises(LakeFileError, match=message):
        read_lake(lake_file, environment)


@given(lake_files(), st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True))
def test_an_environment_without_changes_differs_in_its_name_only(
    file: dict[str, Any], environment: str
) -> None:
    name = f"{file['lake']['name']}-{environment}"
    with_name = {**file, "lake": {**file["lake"], "name": name}}
    assert in_environment(file, {}, environment) == with_name
    if len(name) <= 24:
        assert parse_lake(toml(with_name)).name == name


def test_the_content_of_an_environment_is_a_lake_file_of_its_own(lake_file: Path) -> None:
    _own(lake_file, '[table."web.public.orders"]\ndeletes = "soft"\n')
    content = dict(read_content(lake_file, "staging"))
    assert parse_lake(toml(content)) == read_lake(lake_file, "staging")

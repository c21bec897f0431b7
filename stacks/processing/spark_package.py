"""The files that a run of the Spark app needs, and their deployed addresses."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import tomli_w
from aws_cdk import Aws, CfnOutput
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

import spark_app
from spark_app.jvm.classes_jar import CLASSES_JAR
from stacks.base import TributaryStack
from tributary.artifacts.lock import read_lock
from tributary.aws.spark_submit import LAKE_FILE
from tributary.contract.aws import Processing
from tributary.contract.aws_names import Output
from tributary.contract.errors import TributaryError
from tributary.contract.lake import read_content, read_lake

JARS_LOCK = Path(spark_app.__file__).with_name("emr-jars.lock.json")
_ENTRY_POINT = Path(spark_app.__file__).with_name("main.py")
_PLATFORMS = {"arm64": "linux-arm64", "x86_64": "linux-amd64"}


@dataclass(frozen=True)
class SparkFiles:
    """The output of `tributary package` for EMR: the app with its wheels, and the jars."""

    package: Path
    jars: tuple[Path, ...]

    @classmethod
    def find(cls, folder: Path, processing: Processing) -> SparkFiles:
        """Find the files in the folder. Of several packages, take the newest. Raise TributaryError."""
        platform = _PLATFORMS[processing.architecture]
        packages = sorted(
            folder.glob(f"tributary-spark-app-{platform}-*.zip"), key=lambda path: path.stat().st_mtime_ns
        )
        names = [*(artifact.filename for artifact in read_lock(JARS_LOCK)["emr"]), CLASSES_JAR]
        jars = tuple(folder / "spark-jars" / name for name in names)
        missing = [str(jar) for jar in jars if not jar.is_file()]
        if not packages or missing:
            raise TributaryError(
                "the Spark app's package is not built",
                where=str(folder),
                expected=missing[0] if packages else f"tributary-spark-app-{platform}-….zip",
                remedy=f"Run tributary package --platform {platform} --out {folder}.",
            )
        return cls(packages[-1], jars)


@dataclass(frozen=True)
class LakeFiles:
    """The lake file, and the environment whose own file changes some of its entries."""

    path: Path
    environment: str | None = None

    def write(self, path: Path) -> None:
        """Write the environment's lake file, and in its folder the files that derived tables need."""
        if self.environment is None:
            shutil.copyfile(self.path, path)
        else:
            path.write_text(tomli_w.dumps(read_content(self.path, self.environment)))
        for _, table in read_lake(path).derived:
            if table.needed_file is not None:
                (path.parent / table.needed_file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.path.parent / table.needed_file, path.parent / table.needed_file)


class SparkPackage(Construct):
    """The files as assets, and outputs with their addresses."""

    def __init__(self, scope: Construct, construct_id: str, files: SparkFiles, lake_files: LakeFiles) -> None:
        super().__init__(scope, construct_id)
        package = self._asset("App", files.package)
        entry_point = self._asset("EntryPoint", _ENTRY_POINT)
        jars = [self._asset(jar.name.rsplit("-", 1)[0], jar) for jar in files.jars]
        with TemporaryDirectory() as folder:
            # The CDK zips a folder, and Spark unpacks an archive on every machine of a run.
            lake_files.write(Path(folder) / LAKE_FILE)
            lake = self._asset("LakeFile", Path(folder))
        self._assets = (package, entry_point, lake, *jars)
        stack = TributaryStack.of(self)
        assert isinstance(stack, TributaryStack)
        self._aws = stack.aws
        for output, value in {
            Output.SPARK_APP: package.s3_object_url,
            Output.SPARK_ENTRY_POINT: entry_point.s3_object_url,
            Output.LAKE_FILE: lake.s3_object_url,
            Output.SPARK_JARS: ",".join(jar.s3_object_url for jar in jars),
        }.items():
            CfnOutput(scope, output, value=value)

    def read_access(self) -> Iterator[iam.PolicyStatement]:
        """Yield the permissions to read exactly these objects and to see that no folder has their name."""
        bucket = f"arn:{Aws.PARTITION}:s3:::{self._assets[0].s3_bucket_name}"
        keys = [asset.s3_object_key for asset in self._assets]
        yield iam.PolicyStatement(actions=["s3:GetObject"], resources=[f"{bucket}/{key}" for key in keys])
        yield iam.PolicyStatement(
            actions=["s3:ListBucket"],
            resources=[bucket],
            conditions={
                "StringEquals": {"s3:prefix": [prefix for key in keys for prefix in (key, f"{key}/")]}
            },
        )
        if self._aws.bootstrap.key is not None:
            yield iam.PolicyStatement(
                actions=["kms:Decrypt"],
                resources=[self._aws.bootstrap.key],
                conditions={"StringEquals": {"kms:ViaService": f"s3.{self._aws.region}.amazonaws.com"}},
            )

    def _asset(self, construct_id: str, path: Path) -> assets.Asset:
        return assets.Asset(self, construct_id, path=str(path))

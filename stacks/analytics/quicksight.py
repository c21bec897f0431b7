"""Dashboards of Amazon QuickSight on the silver tables, from the same board files as the console's pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_quicksight as quicksight
from constructs import Construct

from stacks.analytics.athena_sql import ColumnType, TileQuery, athena_query, column_name
from stacks.analytics.silver_access import findings_of_silver, querying_silver
from stacks.analytics.visuals import columns_of, grid, visual
from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge
from stacks.lake.athena import RESULTS
from stacks.lake.bucket_access import use_of_key, writing
from stacks.lake.lake_formation import grant_role, reading
from stacks.lake.stack import LakeStack
from stacks.processing.spark_access import bucket_arn, objects_finding
from tributary.contract.aws_analytics import QuickSight
from tributary.contract.boards.board import SUFFIX, Board, BoardError, Tile, read_board, tile_place
from tributary.contract.lake import Lake

_OF_SOURCE = ("DescribeDataSource", "DescribeDataSourcePermissions", "PassDataSource")
_OF_DATA_SET = (
    "DescribeDataSet",
    "DescribeDataSetPermissions",
    "DescribeIngestion",
    "ListIngestions",
    "PassDataSet",
)
_OF_DASHBOARD = ("DescribeDashboard", "ListDashboardVersions", "QueryDashboard")
"""What a reader may do: look, and build analyses of their own. Nobody but CloudFormation changes these."""


@dataclass(frozen=True)
class ShownTile:
    """A tile with its query for Athena, and the columns that it shows."""

    tile: Tile
    query: TileQuery
    columns: Mapping[str, ColumnType]


@dataclass(frozen=True)
class ShownBoard:
    """A board that QuickSight can show."""

    board: Board
    tiles: tuple[ShownTile, ...]


def read_boards(lake: Lake, folder: Path) -> tuple[ShownBoard, ...]:
    """Read the board files of a folder. Raise BoardError for the first tile that QuickSight cannot show."""
    paths = sorted(folder.glob(f"*{SUFFIX}"))
    if not paths:
        raise BoardError(
            "the folder has no board files",
            where="[aws.quicksight].boards",
            found=str(folder),
            expected=f"at least one file whose name ends in {SUFFIX}",
            remedy="Correct the path, which counts from the lake file's folder.",
        )
    return tuple(_shown(lake, path) for path in paths)


def _shown(lake: Lake, path: Path) -> ShownBoard:
    board = read_board(path)
    tiles = []
    for number, tile in enumerate(board.tiles, start=1):
        where = tile_place(path, number, tile.title)
        if tile.as_of is not None:
            raise BoardError(
                "Athena cannot read a table as of an earlier time",
                where=f"{where}, key as_of",
                found=tile.as_of,
                expected="a tile without as_of",
                remedy="Keep this tile in a board outside the folder of [aws.quicksight].boards.",
            )
        query = athena_query(lake, tile.sql, where)
        tiles.append(ShownTile(tile, query, columns_of(tile, query, where)))
    return ShownBoard(board, tuple(tiles))


class QuickSightDashboards(Construct):
    """A data source with a role of its own, a data set for each tile, and a dashboard for each board."""

    def __init__(
        self,
        stack: TributaryStack,
        construct_id: str,
        settings: QuickSight,
        folder: Path,
        lake_stack: LakeStack,
    ) -> None:
        super().__init__(stack, construct_id)
        self._stack, self._principal = stack, settings.principal
        boards = read_boards(stack.lake, folder / settings.boards)
        source = self._source(lake_stack)
        for shown in boards:
            self._dashboard(shown, source)

    def _source(self, lake_stack: LakeStack) -> quicksight.CfnDataSource:
        stack, name = self._stack, self._stack.names.resource
        role = iam.Role(
            self,
            "Role",
            description=f"What QuickSight may do in Athena for dashboards of lake {stack.lake.name}",
            assumed_by=iam.ServicePrincipal(
                "quicksight.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                    "ArnEquals": {
                        "aws:SourceArn": (
                            f"arn:{Aws.PARTITION}:quicksight:{stack.aws.region}:{Aws.ACCOUNT_ID}:"
                            f"datasource/{name}"
                        )
                    },
                },
            ),
        )
        artifacts = bucket_arn(stack, "artifacts")
        policy = iam.ManagedPolicy(
            self,
            "Policy",
            description=f"What QuickSight may do in Athena for dashboards of lake {stack.lake.name}",
            statements=[
                *querying_silver(lake_stack, lake_stack.workgroup),
                *writing(artifacts, f"{artifacts}/{RESULTS}*"),
                *use_of_key(lake_stack.key, stack.aws.region),
            ],
            roles=[role],
        )
        acknowledge(policy, findings_of_silver(lake_stack, _ANY_TABLE))
        acknowledge(policy, {objects_finding(stack, "artifacts", f"{RESULTS}*"): _NAMED_BY_ATHENA})
        source = quicksight.CfnDataSource(
            self,
            "Source",
            aws_account_id=Aws.ACCOUNT_ID,
            data_source_id=name,
            name=f"Lake {stack.lake.name}",
            type="ATHENA",
            data_source_parameters=quicksight.CfnDataSource.DataSourceParametersProperty(
                athena_parameters=quicksight.CfnDataSource.AthenaParametersProperty(
                    work_group=lake_stack.workgroup, role_arn=role.role_arn
                )
            ),
            permissions=[
                quicksight.CfnDataSource.ResourcePermissionProperty(
                    principal=self._principal, actions=_actions(_OF_SOURCE)
                )
            ],
        )
        grants = grant_role(stack, "QuickSight", role.role_arn, [reading(lake_stack.silver_database)])
        source.node.add_dependency(policy, *grants)
        return source

    def _dashboard(self, shown: ShownBoard, source: quicksight.CfnDataSource) -> None:
        board = shown.board
        place = f"{self._stack.names.resource}-{board.name}"
        sets = {
            f"tile-{number}": self._data_set(f"{place}-{number}", board, tile, number, source)
            for number, tile in enumerate(shown.tiles, start=1)
        }
        tiles = [(each.tile, data) for each, data in zip(shown.tiles, sets, strict=True)]
        of = quicksight.CfnDashboard
        of(
            self,
            f"Board-{board.name}",
            aws_account_id=Aws.ACCOUNT_ID,
            dashboard_id=place,
            name=board.title,
            permissions=[
                of.ResourcePermissionProperty(principal=self._principal, actions=_actions(_OF_DASHBOARD))
            ],
            # Otherwise CloudFormation would accept a dashboard whose visuals show errors.
            validation_strategy=of.ValidationStrategyProperty(mode="STRICT"),
            definition=of.DashboardVersionDefinitionProperty(
                data_set_identifier_declarations=[
                    of.DataSetIdentifierDeclarationProperty(identifier=data, data_set_arn=data_set.attr_arn)
                    for data, data_set in sets.items()
                ],
                # The names of the board: a query's own names could have letters that Athena changes.
                calculated_fields=[
                    of.CalculatedFieldProperty(
                        data_set_identifier=data, name=name, expression=f"{{{column_name(column)}}}"
                    )
                    for data, tile in zip(sets, shown.tiles, strict=True)
                    for column, name in enumerate(tile.columns, start=1)
                ],
                sheets=[
                    of.SheetDefinitionProperty(
                        sheet_id="board",
                        name=board.title,
                        content_type="INTERACTIVE",
                        visuals=[
                            visual(each.tile, each.query, data)
                            for each, data in zip(shown.tiles, sets, strict=True)
                        ],
                        layouts=[
                            of.LayoutProperty(
                                configuration=of.LayoutConfigurationProperty(
                                    grid_layout=of.GridLayoutConfigurationProperty(elements=list(grid(tiles)))
                                )
                            )
                        ],
                    )
                ],
            ),
        )

    def _data_set(
        self, place: str, board: Board, tile: ShownTile, number: int, source: quicksight.CfnDataSource
    ) -> quicksight.CfnDataSet:
        """Add the data set of a tile. Athena runs its SQL each time that somebody opens the dashboard."""
        of = quicksight.CfnDataSet
        return of(
            self,
            f"Data-{board.name}-{number}",
            aws_account_id=Aws.ACCOUNT_ID,
            data_set_id=place,
            name=f"{board.title}: {tile.tile.title}"[:128],
            import_mode="DIRECT_QUERY",
            physical_table_map={
                "answer": of.PhysicalTableProperty(
                    custom_sql=of.CustomSqlProperty(
                        data_source_arn=source.attr_arn,
                        name=tile.tile.title[:64],
                        sql_query=tile.query.typed(tile.columns),
                        columns=[
                            of.InputColumnProperty(name=column_name(column), type=kind)
                            for column, kind in enumerate(tile.columns.values(), start=1)
                        ],
                    )
                )
            },
            permissions=[
                of.ResourcePermissionProperty(principal=self._principal, actions=_actions(_OF_DATA_SET))
            ],
        )


def _actions(names: tuple[str, ...]) -> list[str]:
    return [f"quicksight:{name}" for name in names]


_ANY_TABLE = "The board files choose which of the lake's tables the dashboards read. They can only read them."
_NAMED_BY_ATHENA = "Athena names the files of a query's result after the query. They expire after a week."

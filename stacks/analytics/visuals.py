"""A board's tiles as visuals of Amazon QuickSight, and where they are on the sheet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from aws_cdk import aws_quicksight as quicksight

from stacks.analytics.athena_sql import Column, ColumnType, TileQuery
from tributary.contract.boards.board import (
    BarTile,
    BoardError,
    LineTile,
    NumberTile,
    PieTile,
    ScatterTile,
    TableTile,
    Tile,
)

_D = quicksight.CfnDashboard
_COLUMNS_OF_A_SHEET = 36
_ROWS_OF_A_NUMBER, _ROWS_OF_A_CHART = 6, 12


def columns_of(tile: Tile, query: TileQuery, where: str) -> Mapping[str, ColumnType]:
    """Return the columns that the tile shows, with the types that its chart needs. Raise BoardError."""
    found = {column.name: column.type for column in query.columns}
    match tile:
        case BarTile():
            needed: dict[str, ColumnType] = {tile.x: "STRING", **dict.fromkeys(tile.y, "DECIMAL")}
        case LineTile():
            needed = {tile.x: found.get(tile.x, "STRING"), **dict.fromkeys(tile.y, "DECIMAL")}
        case PieTile():
            needed = {tile.label: "STRING", tile.value: "DECIMAL"}
        case ScatterTile():
            numbers = (tile.x, tile.y, *([tile.size] if tile.size else []))
            needed = {**dict.fromkeys(numbers, "DECIMAL"), **({tile.label: "STRING"} if tile.label else {})}
        case NumberTile():
            needed = {tile.value: "DECIMAL"}
        case TableTile():
            needed = found
        case _:
            assert_never(tile)
    if missing := [name for name in needed if name not in found]:
        raise BoardError(
            "the answer has no such column",
            where=where,
            found=missing[0],
            expected=f"one of {', '.join(found)}",
            remedy="Name the column in the SQL with AS, or change the tile.",
        )
    return needed


def visual(tile: Tile, query: TileQuery, data: str) -> quicksight.CfnDashboard.VisualProperty:
    """Return the visual of the tile over the data set `data`, which is also the visual's id."""
    fields = _Fields(data, {column.name: column for column in query.columns})
    title = _D.VisualTitleLabelOptionsProperty(
        visibility="VISIBLE", format_text=_D.ShortFormatTextProperty(plain_text=tile.title)
    )
    match tile:
        case BarTile():
            bars = _D.BarChartConfigurationProperty(
                orientation="VERTICAL",
                bars_arrangement="STACKED" if tile.stacked else "CLUSTERED",
                field_wells=_D.BarChartFieldWellsProperty(
                    bar_chart_aggregated_field_wells=_D.BarChartAggregatedFieldWellsProperty(
                        category=[fields.text(tile.x)], values=fields.numbers(tile.y)
                    )
                ),
                sort_configuration=_D.BarChartSortConfigurationProperty(category_sort=fields.sort(query)),
            )
            return _D.VisualProperty(
                bar_chart_visual=_D.BarChartVisualProperty(
                    visual_id=data, title=title, chart_configuration=bars
                )
            )
        case LineTile():
            line = _D.LineChartConfigurationProperty(
                type="LINE",
                field_wells=_D.LineChartFieldWellsProperty(
                    line_chart_aggregated_field_wells=_D.LineChartAggregatedFieldWellsProperty(
                        category=[fields.dimension(tile.x)], values=fields.numbers(tile.y)
                    )
                ),
                sort_configuration=_D.LineChartSortConfigurationProperty(category_sort=fields.sort(query)),
            )
            return _D.VisualProperty(
                line_chart_visual=_D.LineChartVisualProperty(
                    visual_id=data, title=title, chart_configuration=line
                )
            )
        case PieTile():
            pie = _D.PieChartConfigurationProperty(
                field_wells=_D.PieChartFieldWellsProperty(
                    pie_chart_aggregated_field_wells=_D.PieChartAggregatedFieldWellsProperty(
                        category=[fields.text(tile.label)], values=fields.numbers([tile.value])
                    )
                ),
                sort_configuration=_D.PieChartSortConfigurationProperty(category_sort=fields.sort(query)),
            )
            return _D.VisualProperty(
                pie_chart_visual=_D.PieChartVisualProperty(
                    visual_id=data, title=title, chart_configuration=pie
                )
            )
        case ScatterTile():
            return _D.VisualProperty(
                scatter_plot_visual=_D.ScatterPlotVisualProperty(
                    visual_id=data, title=title, chart_configuration=_scatter(tile, fields)
                )
            )
        case NumberTile():
            number = _D.KPIConfigurationProperty(
                field_wells=_D.KPIFieldWellsProperty(values=[fields.number(tile.value, tile.unit)])
            )
            return _D.VisualProperty(
                kpi_visual=_D.KPIVisualProperty(visual_id=data, title=title, chart_configuration=number)
            )
        case TableTile():
            grid = _D.TableConfigurationProperty(
                field_wells=_D.TableFieldWellsProperty(
                    table_unaggregated_field_wells=_D.TableUnaggregatedFieldWellsProperty(
                        values=[fields.raw(column.name) for column in query.columns]
                    )
                ),
                sort_configuration=_D.TableSortConfigurationProperty(row_sort=fields.sort(query)),
            )
            return _D.VisualProperty(
                table_visual=_D.TableVisualProperty(visual_id=data, title=title, chart_configuration=grid)
            )
        case _:
            assert_never(tile)


def _scatter(tile: ScatterTile, fields: _Fields) -> quicksight.CfnDashboard.ScatterPlotConfigurationProperty:
    """Return a point for each name, or for each row if the points have no names."""
    size = fields.numbers([tile.size]) if tile.size else None
    if tile.label is None:
        wells = _D.ScatterPlotFieldWellsProperty(
            scatter_plot_unaggregated_field_wells=_D.ScatterPlotUnaggregatedFieldWellsProperty(
                x_axis=[fields.as_number(tile.x)], y_axis=[fields.as_number(tile.y)], size=size
            )
        )
    else:
        wells = _D.ScatterPlotFieldWellsProperty(
            scatter_plot_categorically_aggregated_field_wells=(
                _D.ScatterPlotCategoricallyAggregatedFieldWellsProperty(
                    x_axis=fields.numbers([tile.x]),
                    y_axis=fields.numbers([tile.y]),
                    category=[fields.text(tile.label)],
                    size=size,
                )
            )
        )
    return _D.ScatterPlotConfigurationProperty(field_wells=wells)


class _Fields:
    """The columns of a data set as fields of a visual."""

    def __init__(self, data: str, columns: Mapping[str, Column]) -> None:
        self._data, self._columns = data, columns

    def _id(self, name: str) -> str:
        return f"{self._data}-{list(self._columns).index(name) + 1}"

    def _column(self, name: str) -> quicksight.CfnDashboard.ColumnIdentifierProperty:
        return _D.ColumnIdentifierProperty(data_set_identifier=self._data, column_name=name)

    def text(self, name: str) -> quicksight.CfnDashboard.DimensionFieldProperty:
        return _D.DimensionFieldProperty(
            categorical_dimension_field=_D.CategoricalDimensionFieldProperty(
                field_id=self._id(name), column=self._column(name)
            )
        )

    def as_number(self, name: str) -> quicksight.CfnDashboard.DimensionFieldProperty:
        return _D.DimensionFieldProperty(
            numerical_dimension_field=_D.NumericalDimensionFieldProperty(
                field_id=self._id(name), column=self._column(name)
            )
        )

    def dimension(self, name: str) -> quicksight.CfnDashboard.DimensionFieldProperty:
        """Return the column as an axis of its own type."""
        column = self._columns[name]
        if column.type == "STRING":
            return self.text(name)
        if column.type == "DECIMAL":
            return self.as_number(name)
        return _D.DimensionFieldProperty(
            date_dimension_field=_D.DateDimensionFieldProperty(
                field_id=self._id(name), column=self._column(name), date_granularity=column.granularity
            )
        )

    def numbers(self, names: Sequence[str]) -> list[quicksight.CfnDashboard.MeasureFieldProperty]:
        return [self.number(name) for name in names]

    def number(self, name: str, unit: str = "") -> quicksight.CfnDashboard.MeasureFieldProperty:
        """Return the column as a value. The SQL has aggregated it, so a sum is over one row."""
        with_unit = _D.NumberFormatConfigurationProperty(
            format_configuration=_D.NumericFormatConfigurationProperty(
                number_display_format_configuration=_D.NumberDisplayFormatConfigurationProperty(
                    suffix=f" {unit}"
                )
            )
        )
        return _D.MeasureFieldProperty(
            numerical_measure_field=_D.NumericalMeasureFieldProperty(
                field_id=self._id(name),
                column=self._column(name),
                aggregation_function=_D.NumericalAggregationFunctionProperty(
                    simple_numerical_aggregation="SUM"
                ),
                format_configuration=with_unit if unit else None,
            )
        )

    def raw(self, name: str) -> quicksight.CfnDashboard.UnaggregatedFieldProperty:
        return _D.UnaggregatedFieldProperty(field_id=self._id(name), column=self._column(name))

    def sort(self, query: TileQuery) -> list[quicksight.CfnDashboard.FieldSortOptionsProperty] | None:
        """Return the order of the SQL, which QuickSight would otherwise replace by its own."""
        if query.order is None:
            return None
        name, descends = query.order
        sort = _D.FieldSortProperty(field_id=self._id(name), direction="DESC" if descends else "ASC")
        return [_D.FieldSortOptionsProperty(field_sort=sort)]


def grid(
    tiles: Sequence[tuple[Tile, str]],
) -> Iterator[quicksight.CfnDashboard.GridLayoutElementProperty]:
    """Yield the place of each tile and visual id: from left to right, in rows, as the console has them."""
    column = row = height = 0
    for tile, visual_id in tiles:
        width = tile.width * _COLUMNS_OF_A_SHEET // 12
        rows = _ROWS_OF_A_NUMBER if isinstance(tile, NumberTile) else _ROWS_OF_A_CHART
        if column + width > _COLUMNS_OF_A_SHEET:
            column, row, height = 0, row + height, 0
        yield _D.GridLayoutElementProperty(
            element_id=visual_id,
            element_type="VISUAL",
            column_index=column,
            column_span=width,
            row_index=row,
            row_span=rows,
        )
        column, height = column + width, max(height, rows)

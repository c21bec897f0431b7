"""How Debezium sends dates, timestamps, times of day and intervals."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, IntegerType, LongType, StringType, TimestampType

from spark_app.wire.connect_schema import ConnectSchema
from spark_app.wire.conversion import Conversion, Convert, fallible, same

_MICROSECONDS_PER_HOUR = 3_600_000_000

_INFINITE_DAYS = 2**31 - 1
_INFINITE_MICROS = 2**63 - 1
"""Infinity in the lake, and negated for -infinity: the largest number of the type, as in DuckDB."""


def zoned_timestamp(_: ConnectSchema) -> Conversion:
    """Convert ISO 8601 with an offset, or the name of an infinity, to a timestamp."""

    def to_lake(value: Column) -> Column:
        return (
            F.when(value == "infinity", F.timestamp_micros(F.lit(_INFINITE_MICROS)))
            # Debezium sends the latter for one in an array (an overflow, measured with 3.6.3).
            .when(
                (value == "-infinity") | value.startswith("+292269055-12-02T23:00:00"),
                F.timestamp_micros(F.lit(-_INFINITE_MICROS)),
            )
            .otherwise(value.cast(TimestampType()))
        )

    return fallible(StringType(), TimestampType(), to_lake)


def interval(_: ConnectSchema) -> Conversion:
    """Convert an interval to ISO 8601, as Debezium sends it.

    A double rounds some seconds: 12.425070999 for 12.425071."""
    seconds = r"-?\d+\.\d+(?=S$)"

    def to_lake(value: Column) -> Column:
        exact = F.round(F.regexp_extract(value, seconds, 0).cast("decimal(12,9)"), 6).cast("string")
        trimmed = F.regexp_replace(exact, r"\.?0+$", "")
        repaired = F.concat(F.regexp_replace(value, seconds + "S$", ""), trimmed, F.lit("S"))
        return F.when(value.rlike(r"\.\d{7,}S$"), repaired).otherwise(value)

    return Conversion(StringType(), StringType(), to_lake)


def _time_of_day(microseconds: Convert, wire: DataType) -> Conversion:
    """Convert a time of day to text, `HH:MM:SS.ffffff`, because Spark has no type for it.

    MySQL's and MariaDB's TIME is from -838 to 838 hours."""

    def to_text(value: Column) -> Column:
        signed = microseconds(value)
        micros = F.abs(signed)
        seconds = F.floor(micros % _MICROSECONDS_PER_HOUR / 1_000_000)
        return F.format_string(
            "%s%02d:%02d:%02d.%06d",
            F.when(signed < 0, "-").otherwise(""),
            F.floor(micros / _MICROSECONDS_PER_HOUR),
            F.floor(seconds / 60),
            seconds % 60,
            micros % 1_000_000,
        )

    return Conversion(wire, StringType(), lambda value: F.when(value.isNotNull(), to_text(value)))


@dataclass(frozen=True)
class _Moments:
    """The numbers that Debezium sends for values of a type.

    Finite values are from `first` to `last`, as far as both PostgreSQL's type and the lake's can hold them.
    Some other numbers stand for either infinity (PostgresValueConverter.POSITIVE_INFINITY_…)."""

    first: int
    last: int
    infinity: tuple[int, ...]
    minus_infinity: tuple[int, ...]

    def converted(self, finite: Convert, infinite: int, lake: Convert) -> Convert:
        """Convert to the lake's type: numbers by `finite`, and infinities to `infinite`."""
        return lambda value: (
            F.when(value.isin(*self.infinity), lake(F.lit(infinite)))
            .when(value.isin(*self.minus_infinity), lake(F.lit(-infinite)))
            .when(value.between(self.first, self.last), finite(value))
        )


# PostgreSQL begins with the Julian day 0. It ends dates in the year 5874897, and moments in 294276, months
# after 64 bits of microseconds do. Debezium sends infinities as its overflows turn them out, measured:
# a streamed day by 3.7.0, by 3.6.3, and the day of a snapshot by both; smaller units by 3.7.0, and by
# 3.6.3.
_DAYS = _Moments(
    -2_440_588,
    2_145_042_905,
    infinity=(2_146_033_979, -2_147_472_692, -622_191_234),
    minus_infinity=(-2_147_472_691, -625_821_272),
)
_MICROS = _Moments(
    -210_866_803_200_000_000,
    _INFINITE_MICROS - 1,
    infinity=(2**63 - 1, 9_223_372_036_825_200_000),
    minus_infinity=(-(2**63), -9_223_372_036_832_400_000),
)
_MILLIS = _Moments(
    _MICROS.first // 1_000,
    _MICROS.last // 1_000,
    infinity=(9_223_372_036_825_200_000, 9_223_372_036_825_200),
    minus_infinity=(-9_223_372_036_832_400_000, -9_223_372_036_832_400),
)


def _micros_of(nanos: Column) -> Column:
    """Return whole microseconds, rounded down, also before 1970."""
    return F.call_function("div", nanos - F.pmod(nanos, F.lit(1_000)), F.lit(1_000))


DATE = fallible(
    IntegerType(), DateType(), _DAYS.converted(F.date_from_unix_date, _INFINITE_DAYS, F.date_from_unix_date)
)
TIMESTAMP_MILLIS = fallible(
    LongType(), TimestampType(), _MILLIS.converted(F.timestamp_millis, _INFINITE_MICROS, F.timestamp_micros)
)
TIMESTAMP_MICROS = fallible(
    LongType(), TimestampType(), _MICROS.converted(F.timestamp_micros, _INFINITE_MICROS, F.timestamp_micros)
)
TIMESTAMP_NANOS = fallible(LongType(), TimestampType(), lambda value: F.timestamp_micros(_micros_of(value)))
TIME_NANOS = _time_of_day(lambda nanos: _micros_of(nanos), LongType())
TIME_MILLIS = _time_of_day(lambda millis: millis.cast("bigint") * 1_000, IntegerType())
TIME_MICROS = _time_of_day(same, LongType())

"""Find functions in Athena's SQL that Athena does not have.

The translator knows functions of all databases, and writes some that it cannot translate as they are. Athena
would refuse them only when a person looks at the dashboard.
"""

from __future__ import annotations

from itertools import pairwise

import sqlglot
from sqlglot import TokenType, exp

_NAMES = """
abs acos all_match any_match any_value approx_distinct approx_most_frequent approx_percentile approx_set
arbitrary array_agg array_distinct array_except array_intersect array_join array_max array_min
array_position array_remove array_sort array_union arrays_overlap asin at_timezone atan atan2 avg bar
bit_count bitwise_and bitwise_and_agg bitwise_left_shift bitwise_not bitwise_or bitwise_or_agg
bitwise_right_shift bitwise_right_shift_arithmetic bitwise_xor bool_and bool_or cardinality cast cbrt ceil
ceiling checksum chr coalesce codepoint combinations concat concat_ws contains contains_sequence corr cos
cosh cosine_similarity count count_if covar_pop covar_samp crc32 cume_dist current_timezone date date_add
date_diff date_format date_parse date_trunc day day_of_month day_of_week day_of_year degrees dense_rank
dow doy e element_at empty_approx_set ends_with every exp extract filter first_value flatten floor format
format_datetime format_number from_base from_base64 from_base64url from_hex from_iso8601_date
from_iso8601_timestamp from_unixtime from_utf8 geometric_mean greatest hamming_distance histogram hour
human_readable_seconds if index infinity intersection_cardinality is_finite is_infinite is_json_scalar
is_nan jaccard_index json_array json_array_contains json_array_get json_array_length json_exists
json_extract json_extract_scalar json_format json_object json_parse json_query json_size json_value
kurtosis lag last_day_of_month last_value lead least length levenshtein_distance listagg ln log log10 log2
lower lpad ltrim luhn_check map map_agg map_concat map_entries map_filter map_from_entries map_keys
map_union map_values map_zip_with max max_by md5 merge millisecond min min_by minute mod month
multimap_agg multimap_from_entries nan ngrams none_match normalize now nth_value ntile nullif
numeric_histogram parse_data_size parse_datetime parse_duration percent_rank pi position pow power
qdigest_agg quarter radians rand random rank reduce reduce_agg regexp_count regexp_extract
regexp_extract_all regexp_like regexp_position regexp_replace regexp_split regr_intercept regr_slope
repeat replace reverse rgb round row row_number rpad rtrim second sequence sha1 sha256 sha512 shuffle sign
sin skewness slice soundex split split_part split_to_map split_to_multimap sqrt starts_with stddev
stddev_pop stddev_samp strpos substr substring sum tan tanh tdigest_agg timezone_hour timezone_minute
to_base to_base64 to_base64url to_hex to_iso8601 to_milliseconds to_unixtime to_utf8 transform
transform_keys transform_values translate trim trim_array truncate try try_cast typeof unnest upper
url_decode url_encode url_extract_fragment url_extract_host url_extract_parameter url_extract_path
url_extract_port url_extract_protocol url_extract_query uuid value_at_quantile values_at_quantiles var_pop
var_samp variance version week week_of_year width_bucket with_timezone word_stem xxhash64 year
year_of_week yow zip zip_with
"""
"""Functions of Athena engine version 3, from Trino's list of functions, without geometry and learning."""
_WORDS = """
all and any array as between by case cube distinct else end except exists from grouping having in
intersect interval is join like limit lateral not offset on or over partition rollup select sets some then
union using values when where with within group
"""
"""Words of SQL that a bracket may follow."""
_OTHERS = frozenset((*_NAMES.split(), *_WORDS.split()))


def functions_that_athena_lacks(sql: str) -> tuple[str, ...]:
    """Return the names of functions in Athena's SQL that it does not have, each once, in upper case."""
    aliases = {each.name.lower() for each in sqlglot.parse_one(sql, read="athena").find_all(exp.TableAlias)}
    tokens = sqlglot.tokenize(sql, read="athena")
    called = {
        name.text.lower()
        for name, bracket in pairwise(tokens)
        if bracket.token_type is TokenType.L_PAREN
        and name.token_type is not TokenType.IDENTIFIER
        and name.text.replace("_", "").isalnum()
    }
    types = {kind.value.lower() for kind in exp.DataType.Type}
    return tuple(sorted(name.upper() for name in called - _OTHERS - aliases - types))

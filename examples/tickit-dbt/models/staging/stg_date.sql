select
    dateid as date_id,
    caldate as calendar_date,
    day as weekday,
    week as week_number,
    month as month_name,
    qtr as quarter,
    year as year_number,
    coalesce(holiday, false) as is_holiday
from {{ source('lake', 'date') }}

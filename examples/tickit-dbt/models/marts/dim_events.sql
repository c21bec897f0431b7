select
    events.event_id,
    events.event_name,
    events.starts_at,
    days.calendar_date as event_date,
    days.month_name,
    days.quarter,
    days.is_holiday,
    categories.category_group,
    categories.category,
    venues.venue,
    venues.city,
    venues.state,
    venues.seats
from {{ ref('stg_event') }} as events
inner join {{ ref('stg_category') }} as categories on events.category_id = categories.category_id
inner join {{ ref('stg_venue') }} as venues on events.venue_id = venues.venue_id
left join {{ ref('stg_date') }} as days on events.date_id = days.date_id

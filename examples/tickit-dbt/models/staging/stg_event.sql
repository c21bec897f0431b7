select
    eventid as event_id,
    venueid as venue_id,
    catid as category_id,
    dateid as date_id,
    eventname as event_name,
    starttime as starts_at
from {{ source('lake', 'event') }}

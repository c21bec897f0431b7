select
    venueid as venue_id,
    venuename as venue,
    venuecity as city,
    venuestate as state,
    venueseats as seats
from {{ source('lake', 'venue') }}

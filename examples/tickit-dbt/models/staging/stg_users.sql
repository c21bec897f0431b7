select
    userid as user_id,
    username,
    firstname as first_name,
    lastname as last_name,
    city,
    state,
    email,
    phone
from {{ source('lake', 'users') }}

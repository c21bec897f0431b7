select
    catid as category_id,
    catgroup as category_group,
    catname as category,
    catdesc as description
from {{ source('lake', 'category') }}

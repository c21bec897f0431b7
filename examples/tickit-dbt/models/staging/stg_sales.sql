select
    salesid as sale_id,
    listid as listing_id,
    sellerid as seller_id,
    buyerid as buyer_id,
    eventid as event_id,
    dateid as date_id,
    qtysold as tickets,
    pricepaid as price_paid,
    commission,
    saletime as sold_at
from {{ source('lake', 'sales') }}

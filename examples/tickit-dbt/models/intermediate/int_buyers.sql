select
    buyer_id,
    count(*) as purchases,
    count(distinct event_id) as events,
    sum(tickets) as tickets_bought,
    sum(price_paid) as spent,
    min(sold_at) as first_purchase_at,
    max(sold_at) as last_purchase_at
from {{ ref('stg_sales') }}
group by buyer_id

with offered as (
    select seller_id, count(*) as listings, sum(tickets_left) as tickets_left
    from {{ ref('stg_listing') }}
    group by seller_id
),

sold as (
    select
        seller_id,
        count(*) as sales,
        sum(tickets) as tickets_sold,
        sum(price_paid) as revenue,
        sum(commission) as commission
    from {{ ref('stg_sales') }}
    group by seller_id
)

select
    coalesce(offered.seller_id, sold.seller_id) as seller_id,
    coalesce(offered.listings, 0) as listings,
    coalesce(offered.tickets_left, 0) as tickets_left,
    coalesce(sold.sales, 0) as sales,
    coalesce(sold.tickets_sold, 0) as tickets_sold,
    coalesce(sold.revenue, 0) as revenue,
    coalesce(sold.commission, 0) as commission
from offered
full outer join sold on offered.seller_id = sold.seller_id

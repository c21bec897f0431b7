with sold as (
    select listing_id, count(*) as sales, sum(tickets) as tickets_sold, sum(price_paid) as revenue
    from {{ ref('stg_sales') }}
    group by listing_id
)

select
    listings.listing_id,
    listings.event_id,
    listings.seller_id,
    days.calendar_date as listing_date,
    listings.listed_at,
    listings.price_per_ticket,
    listings.tickets_left,
    coalesce(sold.sales, 0) as sales,
    coalesce(sold.tickets_sold, 0) as tickets_sold,
    coalesce(sold.revenue, 0) as revenue
from {{ ref('stg_listing') }} as listings
left join sold on listings.listing_id = sold.listing_id
left join {{ ref('stg_date') }} as days on listings.date_id = days.date_id

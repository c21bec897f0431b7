select
    sales.sale_id,
    sales.listing_id,
    sales.event_id,
    sales.seller_id,
    sales.buyer_id,
    days.calendar_date as sale_date,
    sales.sold_at,
    sales.tickets,
    sales.price_paid,
    sales.commission,
    sales.price_paid - sales.commission as seller_proceeds
from {{ ref('stg_sales') }} as sales
left join {{ ref('stg_date') }} as days on sales.date_id = days.date_id

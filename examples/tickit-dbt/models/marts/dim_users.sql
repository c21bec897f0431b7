select
    users.user_id,
    users.username,
    users.first_name || ' ' || users.last_name as full_name,
    users.city,
    users.state,
    buyers.buyer_id is not null as is_buyer,
    sellers.seller_id is not null as is_seller,
    coalesce(buyers.purchases, 0) as purchases,
    coalesce(buyers.tickets_bought, 0) as tickets_bought,
    coalesce(buyers.spent, 0) as spent,
    coalesce(sellers.listings, 0) as listings,
    coalesce(sellers.tickets_sold, 0) as tickets_sold,
    coalesce(sellers.revenue, 0) as revenue
from {{ ref('stg_users') }} as users
left join {{ ref('int_buyers') }} as buyers on users.user_id = buyers.buyer_id
left join {{ ref('int_sellers') }} as sellers on users.user_id = sellers.seller_id

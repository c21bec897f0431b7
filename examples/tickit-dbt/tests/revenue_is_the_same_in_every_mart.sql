-- Every sale has a seller and a listing, so no mart may lose or repeat revenue.
with totals as (
    select
        (select sum(price_paid) from {{ ref('stg_sales') }}) as of_sales,
        (select sum(price_paid) from {{ ref('fct_sales') }}) as of_facts,
        (select sum(revenue) from {{ ref('fct_listings') }}) as of_listings,
        (select sum(revenue) from {{ ref('dim_users') }}) as of_sellers,
        (select sum(spent) from {{ ref('dim_users') }}) as of_buyers
)

select *
from totals
where of_sales <> of_facts or of_sales <> of_listings or of_sales <> of_sellers or of_sales <> of_buyers

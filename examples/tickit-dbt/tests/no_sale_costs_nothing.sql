select sale_id
from {{ ref('fct_sales') }}
where price_paid <= 0 or tickets <= 0 or seller_proceeds > price_paid

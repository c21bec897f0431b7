-- The items of each order, from its newest event. For DuckDB; order_items.athena.sql is for Athena.
WITH newest AS (
    SELECT payload, type, row_number() OVER (PARTITION BY aggregateid ORDER BY id DESC) AS age
    FROM cdc_events
    WHERE aggregatetype = 'order'
),
items AS (
    SELECT payload, unnest(CAST(json_extract(payload, '$.items') AS JSON[])) AS item
    FROM newest
    WHERE age = 1 AND type <> 'OrderDeleted'
)
SELECT
    CAST(json_extract_string(payload, '$.order_id') AS BIGINT) AS order_id,
    json_extract_string(payload, '$.customer_id') AS customer_id,
    CAST(json_extract_string(payload, '$.ordered_on') AS DATE) AS ordered_on,
    CAST(json_extract_string(item, '$.product_id') AS BIGINT) AS product_id,
    json_extract_string(item, '$.product') AS product,
    json_extract_string(item, '$.category') AS category,
    CAST(json_extract_string(item, '$.quantity') AS BIGINT) AS quantity,
    CAST(json_extract_string(item, '$.unit_price') AS DECIMAL(10, 2)) AS unit_price,
    CAST(json_extract_string(item, '$.discount') AS DECIMAL(3, 2)) AS discount,
    CAST(json_extract_string(item, '$.quantity') AS DECIMAL(10, 0))
        * CAST(json_extract_string(item, '$.unit_price') AS DECIMAL(10, 2))
        * (1 - CAST(json_extract_string(item, '$.discount') AS DECIMAL(3, 2))) AS revenue
FROM items

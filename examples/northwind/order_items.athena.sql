-- The items of each order, from its newest event. For Athena; order_items.duckdb.sql is for DuckDB.
WITH newest AS (
    SELECT payload, type, row_number() OVER (PARTITION BY aggregateid ORDER BY id DESC) AS age
    FROM northwind_silver.shop__public__cdc_events
    WHERE aggregatetype = 'order'
),
items AS (
    SELECT newest.payload, unnested.item
    FROM newest
    CROSS JOIN UNNEST(CAST(json_extract(newest.payload, '$.items') AS ARRAY(JSON))) AS unnested (item)
    WHERE newest.age = 1 AND newest.type <> 'OrderDeleted'
)
SELECT
    CAST(json_extract_scalar(payload, '$.order_id') AS BIGINT) AS order_id,
    json_extract_scalar(payload, '$.customer_id') AS customer_id,
    CAST(json_extract_scalar(payload, '$.ordered_on') AS DATE) AS ordered_on,
    CAST(json_extract_scalar(item, '$.product_id') AS BIGINT) AS product_id,
    json_extract_scalar(item, '$.product') AS product,
    json_extract_scalar(item, '$.category') AS category,
    CAST(json_extract_scalar(item, '$.quantity') AS BIGINT) AS quantity,
    CAST(json_extract_scalar(item, '$.unit_price') AS DECIMAL(10, 2)) AS unit_price,
    CAST(json_extract_scalar(item, '$.discount') AS DECIMAL(3, 2)) AS discount,
    CAST(json_extract_scalar(item, '$.quantity') AS DECIMAL(10, 0))
        * CAST(json_extract_scalar(item, '$.unit_price') AS DECIMAL(10, 2))
        * (1 - CAST(json_extract_scalar(item, '$.discount') AS DECIMAL(3, 2))) AS revenue
FROM items

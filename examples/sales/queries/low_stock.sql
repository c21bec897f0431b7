-- The products of which little is left. A row comes and goes with the stock.
SELECT stored.product_id, product.name AS product, stored.in_stock
FROM inventories AS stored
JOIN products AS product ON product.product_id = stored.product_id
WHERE stored.in_stock < 25

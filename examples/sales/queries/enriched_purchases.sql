-- Each purchase with its product, as the lake has the product when the purchase is read.
SELECT
    bought.purchase_id, bought.purchased_at, bought.country, product.name AS product, product.category,
    bought.quantity, bought.amount, CAST(bought.amount - bought.quantity * product.cost AS decimal(9, 2)) AS margin
FROM purchases AS bought
LEFT JOIN products AS product ON product.product_id = bought.product_id

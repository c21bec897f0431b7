-- Totals by category, from the enriched purchases.
SELECT category, count(*) AS purchases, sum(quantity) AS pieces, sum(amount) AS revenue, sum(margin) AS margin
FROM enriched_purchases
GROUP BY category

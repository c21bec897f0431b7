-- The running totals: a row for each country, which grows with each purchase.
SELECT country, count(*) AS purchases, sum(quantity) AS pieces, sum(amount) AS revenue
FROM purchases
GROUP BY country

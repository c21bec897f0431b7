-- The batch job: totals by country.
SELECT country, count(*) AS purchases, sum(quantity) AS pieces, sum(amount) AS revenue
FROM known_purchases
GROUP BY country

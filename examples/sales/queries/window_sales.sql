-- The windowed job: ten minutes of the purchases' own time, a new window every five minutes.
SELECT window.start AS window_start, country, count(*) AS purchases, sum(amount) AS revenue
FROM timely_purchases
GROUP BY window(purchased_at, '10 minutes', '5 minutes'), country

-- The events of both topics together, as the outbox has them.
SELECT id, aggregatetype, aggregateid, type, payload, created_at FROM shop.outbox."order"
UNION ALL
SELECT id, aggregatetype, aggregateid, type, payload, created_at FROM shop.outbox.customer

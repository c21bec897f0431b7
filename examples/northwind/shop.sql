-- A wholesaler of food, and its outbox: a transaction that changes an order or a customer leaves one event behind.

CREATE TABLE customers (
    customer_id text PRIMARY KEY,
    company text NOT NULL,
    contact text NOT NULL,
    city text NOT NULL,
    country text NOT NULL,
    phone text
);

CREATE TABLE products (
    product_id integer PRIMARY KEY,
    name text NOT NULL,
    category text NOT NULL,
    unit_price numeric(10, 2) NOT NULL
);

CREATE TABLE orders (
    order_id integer PRIMARY KEY,
    customer_id text NOT NULL REFERENCES customers,
    ordered_on date NOT NULL,
    order_month text NOT NULL CHECK (order_month ~ '^[0-9]{4}-[0-9]{2}$'),
    shipped_on date,
    freight numeric(10, 2) NOT NULL
);

CREATE TABLE order_items (
    order_id integer NOT NULL REFERENCES orders ON DELETE CASCADE,
    product_id integer NOT NULL REFERENCES products,
    unit_price numeric(10, 2) NOT NULL,
    quantity integer NOT NULL CHECK (quantity > 0),
    discount numeric(3, 2) NOT NULL CHECK (discount BETWEEN 0 AND 1),
    PRIMARY KEY (order_id, product_id)
);

CREATE INDEX ON orders (customer_id);

-- The lake's files are partitioned by these columns, so the values of a row must stay as they are.
CREATE FUNCTION refuse_another_partition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the partition of a row of % cannot change', TG_TABLE_NAME
        USING HINT = 'Delete the row, and insert it again.';
END $$;

CREATE TRIGGER keep_country BEFORE UPDATE OF country ON customers FOR EACH ROW
    WHEN (OLD.country <> NEW.country) EXECUTE FUNCTION refuse_another_partition();

CREATE TRIGGER keep_month BEFORE UPDATE OF order_month ON orders FOR EACH ROW
    WHEN (OLD.order_month <> NEW.order_month) EXECUTE FUNCTION refuse_another_partition();

-- The outbox, with the columns that Debezium's outbox event router expects. The last one makes sure that a
-- transaction writes one event about an order, however many of its rows it changes.
CREATE TABLE cdc_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    aggregatetype text NOT NULL,
    aggregateid text NOT NULL,
    type text NOT NULL,
    payload jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    transaction_id bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    UNIQUE (transaction_id, aggregatetype, aggregateid)
);

CREATE FUNCTION write_event_of_order(changed integer, change text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    event_type text := 'OrderDeleted';
    event_payload jsonb := jsonb_build_object('order_id', changed, 'items', '[]'::jsonb);
BEGIN
    -- Transactions that change the same order write their events one after the other.
    PERFORM FROM orders WHERE order_id = changed FOR UPDATE;
    IF FOUND THEN
        event_type := CASE change WHEN 'INSERT' THEN 'OrderPlaced' ELSE 'OrderChanged' END;
        SELECT to_jsonb(o) || jsonb_build_object('items', coalesce((
            SELECT jsonb_agg(jsonb_build_object(
                'product_id', i.product_id, 'product', p.name, 'category', p.category,
                'unit_price', i.unit_price, 'quantity', i.quantity, 'discount', i.discount) ORDER BY i.product_id)
            FROM order_items i JOIN products p USING (product_id) WHERE i.order_id = o.order_id), '[]'::jsonb))
        INTO event_payload FROM orders o WHERE o.order_id = changed;
    END IF;
    INSERT INTO cdc_events (aggregatetype, aggregateid, type, payload)
    VALUES ('order', changed::text, event_type, event_payload)
    ON CONFLICT (transaction_id, aggregatetype, aggregateid) DO NOTHING;
END $$;

CREATE FUNCTION note_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_event_of_order(coalesce(NEW.order_id, OLD.order_id), TG_OP);
    RETURN NULL;
END $$;

CREATE FUNCTION note_item() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_event_of_order(coalesce(NEW.order_id, OLD.order_id), 'UPDATE');
    RETURN NULL;
END $$;

CREATE FUNCTION note_customer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cdc_events (aggregatetype, aggregateid, type, payload)
    VALUES ('customer', coalesce(NEW.customer_id, OLD.customer_id),
        CASE TG_OP WHEN 'INSERT' THEN 'CustomerAdded' WHEN 'UPDATE' THEN 'CustomerChanged' ELSE 'CustomerDeleted' END,
        to_jsonb(coalesce(NEW, OLD)))
    ON CONFLICT (transaction_id, aggregatetype, aggregateid) DO NOTHING;
    RETURN NULL;
END $$;

-- Deferred to the commit, when the order has all of its items.
CREATE CONSTRAINT TRIGGER note_order AFTER INSERT OR UPDATE OR DELETE ON orders
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_order();

CREATE CONSTRAINT TRIGGER note_item AFTER INSERT OR UPDATE OR DELETE ON order_items
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_item();

CREATE CONSTRAINT TRIGGER note_customer AFTER INSERT OR UPDATE OR DELETE ON customers
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_customer();

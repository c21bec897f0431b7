-- The tables of a stationer. Its purchases are in Kafka only.

CREATE TABLE products (
    product_id integer PRIMARY KEY,
    name text NOT NULL,
    category text NOT NULL,
    price numeric(9, 2) NOT NULL,
    cost numeric(9, 2) NOT NULL
);

CREATE TABLE inventories (
    product_id integer PRIMARY KEY REFERENCES products,
    in_stock integer NOT NULL
);

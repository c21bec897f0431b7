"""The connectors, plugins and workers of Kafka Connect, and what each source database needs for them."""

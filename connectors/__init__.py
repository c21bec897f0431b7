"""What runs in Kafka Connect, the plugins it runs from, and what a source database needs for it."""

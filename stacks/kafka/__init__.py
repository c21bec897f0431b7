"""The Kafka stack: Amazon MSK, its topics and who may use them."""

"""The whole pipeline on one machine: start and supervise PostgreSQL, Kafka, Connect, S3 and Spark."""

"""The whole pipeline on one machine: PostgreSQL, Kafka, Connect, S3 and Spark, under supervision."""

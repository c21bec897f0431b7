"""The Connect stack: Debezium and the Iceberg sink on MSK Connect."""

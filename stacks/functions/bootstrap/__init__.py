"""The function that prepares PostgreSQL databases, in AWS Lambda. It has boto3 and `tickit`."""

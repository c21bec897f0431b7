"""What prepares PostgreSQL databases, in AWS Lambda. It has the standard library, boto3 and `tickit`."""

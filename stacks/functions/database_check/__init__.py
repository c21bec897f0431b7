"""The function that checks an existing PostgreSQL database, in AWS Lambda. It has boto3 and pg8000."""

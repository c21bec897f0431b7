"""The function that checks an existing database, in AWS Lambda. It has boto3, pg8000 and PyMySQL."""

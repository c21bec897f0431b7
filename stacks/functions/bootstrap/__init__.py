"""The function that prepares the lake's own databases, in AWS Lambda. It has boto3 and `tickit`."""

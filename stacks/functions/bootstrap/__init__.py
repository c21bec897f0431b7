"""What runs in AWS Lambda: the standard library, boto3 and `tickit` are all there is beside it."""

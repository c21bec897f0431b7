"""What runs in AWS Lambda: the standard library, boto3 and `cli.tickit` are all there is beside it."""

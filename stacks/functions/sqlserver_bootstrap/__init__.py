"""The function that prepares the lake's own SQL Servers, in AWS Lambda and in the VPC. It has boto3."""

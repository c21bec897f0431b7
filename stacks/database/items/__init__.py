"""Streams of items that the lake creates: DynamoDB's tables and the Kinesis streams of their changes."""

"""DynamoDB and Kinesis on this machine, for sources that read a stream of items."""

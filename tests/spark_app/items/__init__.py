"""The wire form of DynamoDB, and the order of its changes."""

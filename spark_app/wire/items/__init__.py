"""DynamoDB's items: the records of their changes, and how items become rows."""

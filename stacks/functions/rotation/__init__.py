"""The function that rotates the password of Debezium's user, in AWS Lambda."""

"""The streaming stack: Amazon MSK, its topics and the clients' permissions."""

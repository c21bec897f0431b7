"""How a database is prepared as part of a deployment: the function that does it, and what it is made of."""

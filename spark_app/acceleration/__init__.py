"""The choice between the steps in Java and those in plain PySpark, from what the running class path has."""

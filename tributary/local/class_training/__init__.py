"""The Spark application that loads the classes of an archive: `main.py`, which spark-submit starts."""

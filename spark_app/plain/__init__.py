"""The steps of a batch in plain PySpark: what the Java in `spark_app.jvm` has to equal."""

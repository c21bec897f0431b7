"""The steps of a batch that exist twice: in plain PySpark (`plain`) and faster in Java (`jvm`)."""

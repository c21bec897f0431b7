"""The Spark application whose classes go into the archive. spark-submit starts `main.py`."""

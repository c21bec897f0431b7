"""The Spark application: change events in, exact Hudi tables out."""

"""Apache Hudi: the only room that knows its options, classes and files."""

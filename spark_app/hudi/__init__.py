"""Apache Hudi: the only package that knows its options, classes and files."""

"""Schema registries: the ids with which converters frame Avro, and the schemas behind these ids."""

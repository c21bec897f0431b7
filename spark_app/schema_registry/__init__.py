"""Schema registries: the ids with which Avro is framed, and the schemas behind these ids."""

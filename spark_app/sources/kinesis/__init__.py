"""A Kinesis data stream as a source of events, and the bronze table in which its records land first."""

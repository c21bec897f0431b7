"""A client's view of a deployed lake: the AWS session, the stacks' outputs, and how to submit a job."""

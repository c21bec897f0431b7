"""A deployed lake as a client sees it: the AWS session, the stacks' outputs, and how a job is submitted."""

"""The command's requests to AWS: the stacks' outputs, jobs on EMR and EMR Serverless, the lake's status."""

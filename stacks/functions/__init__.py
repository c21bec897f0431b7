"""The Lambda functions of the stacks; each folder is deployed as it is."""

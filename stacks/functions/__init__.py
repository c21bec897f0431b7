"""The stacks' Lambda functions. Each folder is deployed unchanged."""

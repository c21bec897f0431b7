import stacks  # noqa: F401  (chooses the CDK's Node.js, before any test imports the CDK)

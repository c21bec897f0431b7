"""The CDK app: reads the lake file, wires the stacks, nothing else."""

"""What the command asks of AWS: the stacks' outputs, jobs on EMR and EMR Serverless, and how a lake is."""

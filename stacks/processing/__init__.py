"""The processing stack, which runs the Spark app on EMR or EMR Serverless."""

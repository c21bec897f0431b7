"""The processing stack: the Spark app on EMR or EMR Serverless."""

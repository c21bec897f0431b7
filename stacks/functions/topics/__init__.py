"""The function that creates topics on MSK Serverless. main.py runs on Lambda without our other modules."""

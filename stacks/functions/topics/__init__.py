"""The function that makes topics on MSK Serverless; what is in main.py runs on Lambda, on its own."""

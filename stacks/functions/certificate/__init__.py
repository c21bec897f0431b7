"""The function that creates an EMR cluster's certificate. main.py runs on Lambda without other modules."""

"""The function that makes the certificate of an EMR cluster; main.py runs on Lambda, on its own."""

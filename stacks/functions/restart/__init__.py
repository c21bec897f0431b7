"""The function that starts a follow job again after it has died."""

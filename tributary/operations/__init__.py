"""What a person can ask of a running lake: its state, its snapshots, and whether it equals its databases.

The command and the console show what the functions here return.
"""

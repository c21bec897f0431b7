"""The pinned files that the project runs on: which they are, where they are kept, and how they get there."""

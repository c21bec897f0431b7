"""The pinned files that the project needs: their lock files, cache and downloads."""

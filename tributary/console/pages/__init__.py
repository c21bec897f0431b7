"""The console's pages, one module each."""

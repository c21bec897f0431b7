"""The browser in which tests look at the console's pages."""

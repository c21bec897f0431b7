"""The analytics stack: what models and shows the lake's tables, by setting."""

"""How the command shows a deployed lake, and what it tells a person to do."""

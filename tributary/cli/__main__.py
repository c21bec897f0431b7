"""`python -m tributary.cli` is the command `tributary`."""

from tributary.cli.main import main

if __name__ == "__main__":
    main()

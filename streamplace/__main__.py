"""The command line as ``python -m streamplace``."""

from streamplace.cli.main import main

if __name__ == "__main__":
    main()

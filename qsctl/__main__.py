"""`python -m qsctl` is the same program as the console script."""

from qsctl.cli.app import main

if __name__ == "__main__":
    main()

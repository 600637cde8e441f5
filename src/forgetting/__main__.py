"""`python -m forgetting` is the command line."""

from forgetting.cli import main

if __name__ == "__main__":
    main()

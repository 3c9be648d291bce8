"""Allow ``python -m dprepro``."""

from dprepro.cli import main

if __name__ == "__main__":
    main()

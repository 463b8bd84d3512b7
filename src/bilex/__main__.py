"""`python -m bilex`: the same as `bilex`, for where scripts are not on the path."""

from bilex.cli import main

if __name__ == "__main__":
    main()

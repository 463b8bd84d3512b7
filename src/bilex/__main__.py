"""The `bilex` command, also as `python -m bilex`. It imports nothing until Ctrl-C is handled."""

import sys


def main() -> None:
    """Run the command; Ctrl-C before it can report an interruption, during its imports, ends it silently."""
    try:
        from bilex.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

"""The command line. Commands are loaded when they are called, so that `bilex --help` is quick."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

OK, UNEXPECTED, BAD_INPUT, INTERRUPTED, TERMINATED, PIPE_CLOSED = 0, 1, 2, 130, 143, 141


def main() -> None:
    """The entry point of `bilex`."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line.

    Args:
        arguments: The words after `bilex`.

    Returns:
        The exit code: 0 fine, 2 something the user can put right (told in one sentence on stderr),
        130 interrupted by Ctrl-C, 141 the reader of our output went away, 143 terminated. An error
        nobody foresaw is raised, and Python exits with 1 and a traceback.
    """
    try:
        _terminate_politely()
        import click

        from bilex.cli.group import commands
        from bilex.errors import BilexError
    except KeyboardInterrupt:
        return _tell("interrupted.", INTERRUPTED)
    try:
        result = commands.main(args=list(arguments), prog_name="bilex", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else OK
    except (KeyboardInterrupt, click.Abort):
        return _tell("interrupted; no output was left half-written.", INTERRUPTED)
    except BrokenPipeError:
        return _stop_writing()
    except click.ClickException as error:
        error.show()
    except BilexError as error:
        _tell(f"error: {error}", BAD_INPUT)
    except MemoryError:
        _tell("error: there is not enough memory for this; use --limit for fewer words.", BAD_INPUT)
    return BAD_INPUT


def _tell(sentence: str, code: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"bilex: {sentence}\n")
    return code


def _stop_writing() -> int:
    """Point stdout at nothing, so that Python's own flush at exit does not complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


def _terminate_politely() -> None:
    """On SIGTERM leave through the same doors as an error, so that temporary files are removed."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(TERMINATED)

    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGTERM, leave)

"""The command line. Commands are loaded when they are called, so that `bilex --help` is quick."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

OK, UNEXPECTED, BAD_INPUT, INTERRUPTED, TERMINATED, PIPE_CLOSED = 0, 1, 2, 130, 143, 141


def main() -> None:
    """The entry point of `bilex`, and of a shell that asks how a line could go on."""
    asked = os.environ.get("_BILEX_COMPLETE")
    if asked is not None:
        from bilex.cli.completion import complete

        sys.exit(complete(asked))
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
        with commands.make_context("bilex", list(arguments), obj=tuple(arguments)) as context:
            result = commands.invoke(context)
        sys.stdout.flush()
        return result if isinstance(result, int) else OK
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _tell("interrupted; no output was left half-written.", INTERRUPTED)
    except OSError as error:
        return _output_failed(error)
    except click.ClickException as error:
        error.show()
    except BilexError as error:
        _tell(f"error: {error}", BAD_INPUT)
    except MemoryError:
        _tell("error: there is not enough memory for this; use --limit for fewer words.", BAD_INPUT)
    return BAD_INPUT


def _tell(sentence: str, code: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        from bilex.visible import visible

        sys.stderr.write(f"bilex: {visible(sentence)}\n")
    return code


def _output_failed(error: OSError) -> int:
    """The exit code when stdout takes no more: its reader went away, or the disk is full.

    Files are written through `bilex.files`, which tells its own troubles; any other error is raised.
    """
    if error.errno not in (errno.EPIPE, errno.ENOSPC):
        raise error
    with contextlib.suppress(OSError, ValueError):  # Python would complain when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        return PIPE_CLOSED
    return _tell("error: stdout: the disk is full; free some space and run again.", BAD_INPUT)


def _terminate_politely() -> None:
    """On SIGTERM leave through the same doors as an error, so that temporary files are removed."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(TERMINATED)

    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGTERM, leave)

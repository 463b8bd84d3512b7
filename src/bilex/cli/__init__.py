"""The command line. Commands are loaded when they are called, so that `bilex --help` is quick."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

OK, UNEXPECTED, BAD_INPUT, INTERRUPTED, TERMINATED, PIPE_CLOSED = 0, 1, 2, 130, 143, 141
_SHOWN_NAME = 200
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Terminated(KeyboardInterrupt):
    """SIGTERM, as a cluster sends before it takes a machine away; it ends a command as Ctrl-C does."""


def main() -> None:
    """The entry point of `bilex`, and of a shell that asks how a line could go on."""
    asked = os.environ.get("_BILEX_COMPLETE")
    if asked is not None:
        from click.shell_completion import shell_complete

        from bilex.cli.group import commands

        sys.exit(shell_complete(commands, {}, "bilex", "_BILEX_COMPLETE", asked))
    raw = getattr(sys.stdout, "buffer", None)
    if isinstance(raw, io.RawIOBase):
        # With PYTHONUNBUFFERED, Python takes a write of which a nearly full disk took a part for a whole one.
        buffered = io.BufferedWriter(raw)
        sys.stdout = io.TextIOWrapper(buffered, sys.stdout.encoding, sys.stdout.errors, line_buffering=True)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line."""
    try:
        with contextlib.suppress(ValueError):  # in the main thread
            signal.signal(signal.SIGTERM, _terminate)
        import click

        from bilex.cli.group import commands
        from bilex.core.device import enough_memory
        from bilex.core.errors import BilexError
        from bilex.core.files import protected_inputs
    except KeyboardInterrupt as sign:
        return _ended(sign, "")
    try:
        with (
            enough_memory(),
            protected_inputs(),
            _plain_warnings(),
            commands.make_context("bilex", list(arguments), obj=tuple(arguments)) as context,
        ):
            result = commands.invoke(context)
        sys.stdout.flush()
        return result if isinstance(result, int) else OK
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except (KeyboardInterrupt, click.Abort) as sign:
        return _ended(sign, "; no output was left half-written")
    except OSError as error:
        return _output_failed(error)
    except UnicodeEncodeError as error:
        wrong = error.object[error.start : error.end]
        _say(f"error: the output's encoding ({error.encoding}) has no {wrong!r}; set PYTHONIOENCODING=utf-8.")
    except click.ClickException as error:
        error.show()
    except BilexError as error:
        _say(f"error: {error}")
    return BAD_INPUT


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _ended(sign: BaseException, left: str) -> int:
    """The exit code after Ctrl-C or SIGTERM."""
    if isinstance(sign, Terminated):
        return _say(f"terminated{left}.", TERMINATED)
    return _say(f"interrupted{left}.", INTERRUPTED)


def _say(sentence: str, code: int = BAD_INPUT) -> int:
    with contextlib.suppress(OSError, ValueError):
        from bilex.core.text import escape_control_characters

        sys.stderr.write(f"bilex: {escape_control_characters(sentence)}\n")
    return code


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    """Write warnings of bilex as sentences, without the place in the code that Python would add."""
    from bilex.core.errors import BilexWarning

    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **rest: Any) -> None:
        if issubclass(category, BilexWarning):
            _say(f"warning: {message}")
        else:
            before(message, category, *place, **rest)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


def _output_failed(error: OSError) -> int:
    """The exit code when stdout takes no more: its reader went away, or the disk is full.

    Files are written through `bilex.core.files`, which reports its own errors. Any other error is raised if
    it names no file.
    """
    if error.filename is not None and error.errno != errno.EPIPE:
        name = str(error.filename)
        short = name if len(name) <= _SHOWN_NAME else f"{name[:_SHOWN_NAME]}…"
        return _say(f"error: {short}: {error.strerror or error}; check the name.")
    if error.errno != errno.EPIPE and error.errno not in _NO_ROOM:
        raise error
    with contextlib.suppress(OSError, ValueError):  # Python would complain when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        return PIPE_CLOSED
    return _say("error: stdout: the disk is full; free some space and run again.")

"""The command line. Commands are loaded when they are called, so that `bilex --help` is quick."""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any

import click
from click.shell_completion import shell_complete

from bilex.cli.group import commands
from bilex.core.device import enough_memory
from bilex.core.errors import BilexError, BilexWarning
from bilex.core.files import protected_inputs
from bilex.core.text import escape_control_characters

OK, BAD_INPUT, INTERRUPTED, PIPE_CLOSED, TERMINATED = 0, 2, 130, 141, 143
_SHOWN_NAME = 200
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Terminated(KeyboardInterrupt):
    """SIGTERM, as a cluster sends before it takes a machine away; it ends a command as Ctrl-C does."""


def main() -> None:
    """The entry point of `bilex`, and of a shell that completes a line."""
    completing = os.environ.get("_BILEX_COMPLETE")
    if completing is not None:
        sys.exit(shell_complete(commands, {}, "bilex", "_BILEX_COMPLETE", completing))
    raw = getattr(sys.stdout, "buffer", None)
    if isinstance(raw, io.RawIOBase):
        # With PYTHONUNBUFFERED, Python takes a write of which a nearly full disk took a part for a whole one.
        buffered = io.BufferedWriter(raw)
        sys.stdout = io.TextIOWrapper(buffered, sys.stdout.encoding, sys.stdout.errors, line_buffering=True)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line, and return its exit code."""
    with contextlib.suppress(ValueError):  # only the main thread may
        signal.signal(signal.SIGTERM, _terminate)
    try:
        with (
            enough_memory(),
            protected_inputs(),
            warnings.catch_warnings(),
            commands.make_context("bilex", list(arguments), obj=tuple(arguments)) as context,
        ):
            warnings.showwarning = functools.partial(_show_warning, warnings.showwarning)
            result = commands.invoke(context)
        sys.stdout.flush()
        return result if isinstance(result, int) else OK
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except Terminated:
        _report("terminated; no output was left half-written.")
        return TERMINATED
    except (KeyboardInterrupt, click.Abort):
        _report("interrupted; no output was left half-written.")
        return INTERRUPTED
    except OSError as error:
        return _output_failed(error)
    except UnicodeEncodeError as error:
        wrong = error.object[error.start : error.end]
        advice = "set PYTHONIOENCODING=utf-8"
        _report(f"error: the output's encoding ({error.encoding}) has no {wrong!r}; {advice}.")
    except click.ClickException as error:
        message, where = error.format_message(), getattr(error, "ctx", None)
        if "\n" in message:  # the help of a group without a command
            error.show()
        else:
            _report(f"error: {message}" + (f" Try '{where.command_path} --help'." if where else ""))
    except BilexError as error:
        _report(f"error: {error}")
    return BAD_INPUT


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _report(sentence: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"bilex: {escape_control_characters(sentence)}\n")


def _show_warning(before: Any, message: Any, category: type[Warning], *place: Any, **rest: Any) -> None:
    """Write warnings of bilex as sentences, without the place in the code that Python would add."""
    if issubclass(category, BilexWarning):
        _report(f"warning: {message}")
    else:
        before(message, category, *place, **rest)


def _output_failed(error: OSError) -> int:
    """The exit code when stdout takes no more: its reader went away, or the disk is full.

    Files are written through `bilex.core.files`, which reports its own errors. Any other error is raised if
    it names no file.
    """
    if error.errno == errno.EPIPE or (error.filename is None and error.errno in _NO_ROOM):
        with contextlib.suppress(OSError, ValueError):  # Python would complain when it flushes at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            return PIPE_CLOSED
        _report("error: stdout: the disk is full; free some space and run again.")
    elif error.filename is not None:
        name = str(error.filename)
        short = name if len(name) <= _SHOWN_NAME else f"{name[:_SHOWN_NAME]}…"
        _report(f"error: {short}: {error.strerror or error}; check the name.")
    else:
        raise error
    return BAD_INPUT

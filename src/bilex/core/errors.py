"""The exception and the warning that users meet, and what their sentences share."""

from __future__ import annotations

import contextlib
import difflib
import shlex
from collections.abc import Iterable, Iterator

_TO_FIT = ("torch", "numba", "scipy")


class BilexError(Exception):
    """A mistake that a user can correct, described in one sentence.

    The sentence names the file, line or word, says what is wrong and what to do. The command line
    prints it without a traceback and exits with code 2; in a program, catch this class.
    """


class BilexWarning(UserWarning):
    """Something that a user may want to know and need not act upon, in one sentence."""


class MissingLibraryError(BilexError, ImportError):
    """A library that not every user needs is not installed."""


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, as a question, or nothing."""
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


def reason_of(error: BaseException) -> str:
    """The first line of another library's error, to be quoted within a sentence."""
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".:") if lines else type(error).__name__


@contextlib.contextmanager
def optional_library(what: str, install: str) -> Iterator[None]:
    """For a block that imports what `what` needs: a missing library is named with what pip installs."""
    try:
        yield
    except ImportError as error:
        name = error.name or "a library"
        raise MissingLibraryError(
            f"{what} needs {name}, which is not installed here; run: pip install {shlex.quote(install)}"
        ) from error


@contextlib.contextmanager
def fitting_libraries(what: str) -> Iterator[None]:
    """For a block that imports what `what` ("bilex.C1") needs: a missing library is named with the remedy."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _TO_FIT:
            raise
        raise MissingLibraryError(
            f"{what} needs {error.name}, which is not installed: a saved model translates with numpy and "
            f"safetensors alone, but fitting needs {', '.join(_TO_FIT)}; install them with pip."
        ) from error

"""The one exception and the one warning that users meet, and what its sentences share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BilexError(Exception):
    """Something a user can put right, said in one sentence.

    The sentence names the file, line or word, says what is wrong and what to do. The command line
    prints it without a traceback and exits with code 2; in a program, catch this class.
    """


class BilexWarning(UserWarning):
    """Something that a user may want to know and need not act upon, in one sentence."""


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, as a question, or nothing."""
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""

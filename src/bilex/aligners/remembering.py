"""What several fits to the same vectors have in common, remembered as long as a caller asks for it.

A trial and the fit behind it see the same vocabularies where these are small. What a method learns from the
vectors alone, without seeds, is then the same in both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from bilex.vectors import WordVectors

Known = dict[Hashable, Any]

_KNOWN: ContextVar[WeakKeyDictionary[WordVectors, Known] | None] = ContextVar("known", default=None)


@contextmanager
def remembering() -> Iterator[None]:
    """Let the fits within share what they learn from vectors alone; these must stay as they are meanwhile."""
    before = _KNOWN.set(WeakKeyDictionary())
    try:
        yield
    finally:
        _KNOWN.reset(before)


def remembered(vectors: WordVectors) -> Known:
    """What earlier fits have learned from these vectors, to read and to add to; empty outside `remembering`.

    Args:
        vectors: The vectors, that is this very object.
    """
    known = _KNOWN.get()
    return {} if known is None else known.setdefault(vectors, {})

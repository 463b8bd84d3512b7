"""Text for people: lists that are cut, and words of any origin, whose control characters are escaped."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

# Control characters but tab and newline, marks that turn the direction of writing, and halves of characters.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_control_characters(text: str) -> str:
    r"""The text with escape sequences and the like written out, as \x1b or \u202e."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def encodable(text: str) -> str:
    r"""The text with halves of characters, which UTF-8 cannot hold, written out as \ud800."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def listed(items: Iterable[object], most: int) -> str:
    """The first items, separated by commas, and "..." if there are more."""
    texts = [str(item) for item in itertools.islice(items, most + 1)]
    return ", ".join([*texts[:most], "..."] if len(texts) > most else texts)


def safe_console(**settings: Any) -> Console:
    """A console of rich that shows words as they are: no markup, no emoji, no control characters."""
    return _console_class()(markup=False, emoji=False, highlight=False, **settings)


@functools.cache
def _console_class() -> type[Console]:
    from rich.console import Console
    from rich.text import Text

    class SafeConsole(Console):
        def render_str(self, text: str, **overrides: Any) -> Text:
            return super().render_str(escape_control_characters(text), **overrides)

    return SafeConsole

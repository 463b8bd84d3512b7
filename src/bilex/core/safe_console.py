"""A console for the words of others; apart from `progress_display`, so that tables need no bars."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from bilex.core.visible import escape_control_characters


class SafeConsole(Console):
    """A console that shows words as they are: no markup in brackets, no emoji, no control characters.

    Args:
        settings: As those of rich's console.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render_str(self, text: str, **overrides: Any) -> Text:
        """The text of a cell or a line, made harmless."""
        return super().render_str(escape_control_characters(text), **overrides)

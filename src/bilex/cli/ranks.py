"""Ranges of frequency ranks, as they are typed."""

from __future__ import annotations

from bilex.core.errors import BilexError


def ranks_of_text(text: str, option: str) -> tuple[int, int | None]:
    """'1-20000', '500-' or '2000' (the first 2000) as a first and a last rank.

    Args:
        text: What was typed.
        option: The option it was typed for.

    Raises:
        BilexError: The text is none of these.
    """
    first, dash, last = text.replace("_", "").replace(",", "").partition("-")
    try:
        if not dash:
            return 1, int(first)
        return int(first or 1), int(last) if last else None
    except ValueError:
        raise BilexError(f"{option} {text}: write it as FIRST-LAST, for example 1-20000.") from None

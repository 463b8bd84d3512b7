"""HTML put together so that text can never be taken for markup."""

from __future__ import annotations

import html
import json
from typing import Any

_WITHOUT_END = ("input", "meta", "br")


class Html(str):
    """Text that is markup already; every other text is escaped where it enters a page."""

    __slots__ = ()


def element(tag: str, /, *children: str, **attributes: Any) -> Html:
    """One element.

    Args:
        tag: Its name.
        children: What is in it; text that is not `Html` is escaped.
        attributes: Written with hyphens for underscores, a trailing one dropped (`class_`); None and False
            leave an attribute out, True writes it without a value.
    """
    written = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _WITHOUT_END:
        return Html(f"<{tag}{written}>")
    return Html(f"<{tag}{written}>{joined(*children)}</{tag}>")


def joined(*parts: str) -> Html:
    """Several pieces in a row; those that are not `Html` are escaped."""
    return Html("".join(part if isinstance(part, Html) else html.escape(part, quote=False) for part in parts))


def json_block(value: Any, **attributes: Any) -> Html:
    """Data for the page's script; no text in it can end the block."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return element("script", Html(text), type="application/json", **attributes)


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'

"""Matplotlib's SVG for the page: made small, and coloured by the page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from markupsafe import Markup

from bilex_bench.figures.palette import DARK

_NAMESPACE = re.compile(r"^\{[^}]*\}")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_COLOUR = re.compile("|".join(DARK), re.IGNORECASE)
_NO_TURN = re.compile(r"^rotate\(-?0 [^)]*\)$")
_LEFT_OUT = ("metadata", "style")
_FONT = re.compile(r"font-family: [^;]*;? ?")


def inline_svg(svg: str, prefix: str) -> Markup:
    """SVG for the middle of a page.

    The names in it get a prefix, so that no two figures share one; its fonts are the page's; the colours of
    our palette become variables that the page sets for light and dark; what says nothing is left out.
    """
    root = ElementTree.fromstring(svg)
    _tidy(root, prefix)
    root.attrib.pop("width")
    root.attrib.pop("height")
    root.set("aria-hidden", "true")
    return Markup(ElementTree.tostring(root, encoding="unicode", method="html"))


def palette_css() -> str:
    """The variables that figures are coloured by, for a light and for a dark page."""
    light = "".join(f"{_variable(colour)}:{colour};" for colour in DARK)
    dark = "".join(f"{_variable(colour)}:{other};" for colour, other in DARK.items())
    return (
        f":root{{{light}}}\n"
        f"@media screen and (prefers-color-scheme: dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}\n"
    )


def css_colour(colour: str) -> str:
    """A colour as the page sets it; one that is not of our palette as it is."""
    return f"var({_variable(colour)})" if colour.lower() in DARK else colour


def _tidy(node: ElementTree.Element, prefix: str) -> None:
    node.tag = _NAMESPACE.sub("", node.tag)
    attributes = {_NAMESPACE.sub("", name): value for name, value in node.attrib.items()}
    node.attrib.clear()
    for name, value in attributes.items():
        if (name == "id" and node.tag == "g") or name == "version" or _NO_TURN.match(value):
            continue
        node.set(name, _value(name, value, prefix))
    node.tail = None
    if node.tag != "text":
        node.text = None
    for child in list(node):
        if _NAMESPACE.sub("", child.tag) in _LEFT_OUT:
            node.remove(child)
            continue
        _tidy(child, prefix)
    _share_style(node)


def _value(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return f"{prefix}-{value}"
    if name == "href":
        return f"#{prefix}-{value[1:]}"
    if name == "clip-path":
        return value.replace("url(#", f"url(#{prefix}-")
    if name == "style":
        value = _COLOUR.sub(lambda found: f"var({_variable(found[0])})", _FONT.sub("", value))
    return " ".join(_LONG_NUMBER.sub(lambda found: f"{float(found[0]):.2f}", value).split())


def _share_style(node: ElementTree.Element) -> None:
    """Where a group holds nothing but marks that look the same, the group says so once."""
    marks = [child for child in node if child.tag == "use"]
    styles = {mark.get("style", "") for mark in marks}
    if len(styles) != 1 or len(marks) + sum(child.tag == "defs" for child in node) != len(node):
        return
    for mark in marks:
        mark.attrib.pop("style", None)
    node.set("style", f"{styles.pop()}; {node.get('style', '')}".strip("; "))


def _variable(colour: str) -> str:
    return f"--f{colour.lower()[1:]}"

"""Figures on the page: matplotlib's SVG made small, coloured by the page, and told about on hovering."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from bilex_bench.figures import Drawing, Mark
from bilex_bench.figures.palette import DARK
from bilex_bench.report.markup import Html, element, json_block

_NAMESPACE = re.compile(r"^\{[^}]*\}")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_COLOUR = re.compile("|".join(DARK), re.IGNORECASE)
_NO_TURN = re.compile(r"^rotate\(-?0 [^)]*\)$")
_LEFT_OUT = ("metadata", "style")
_FONT = re.compile(r"font-family: [^;]*;? ?")


def figure_block(drawing: Drawing) -> Html:
    """A figure with its title and caption."""
    caption = f"{drawing.name}-caption"
    return element(
        "figure",
        element(
            "figcaption",
            element("h3", element("a", drawing.title, href=f"#{drawing.name}")),
            element("p", drawing.caption, class_="caption"),
            id=caption,
        ),
        element(
            "div",
            element(
                "div",
                inline_svg(drawing.svg(transparent=True), drawing.name),
                json_block(_told(drawing.marks), class_="marks"),
                class_="drawing",
                role="img",
                aria_labelledby=caption,
                style=f"--width: {drawing.figure.get_figwidth():g}",
            ),
            class_="scroll",
            tabindex=0,
            role="region",
            aria_label=drawing.title,
        ),
        id=drawing.name,
    )


def inline_svg(svg: str, prefix: str) -> Html:
    """SVG for the middle of a page.

    The names in it get a prefix, so that no two figures share one; its fonts are the page's; the colours of
    our palette become variables that the page sets for light and dark; what says nothing is left out.

    Args:
        svg: As matplotlib writes it.
        prefix: For names.
    """
    root = ElementTree.fromstring(svg)
    _tidy(root, prefix)
    root.attrib.pop("width")
    root.attrib.pop("height")
    root.set("aria-hidden", "true")
    return Html(ElementTree.tostring(root, encoding="unicode", method="html"))


def palette_css() -> str:
    """The variables that figures are coloured by, for a light and for a dark page."""
    light = "".join(f"{_variable(colour)}:{colour};" for colour in DARK)
    dark = "".join(f"{_variable(colour)}:{other};" for colour, other in DARK.items())
    return (
        f":root{{{light}}}\n"
        f"@media screen and (prefers-color-scheme: dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}\n"
    )


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


def _told(marks: tuple[Mark, ...]) -> list[list[str | float]]:
    """Marks by their text: a word and its translation are shown together, in all panels."""
    by_text: dict[str, list[str | float]] = {}
    for mark in marks:
        by_text.setdefault(mark.text, [mark.text]).extend([mark.x, mark.y])
    return list(by_text.values())

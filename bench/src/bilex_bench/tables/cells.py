"""What can stand in a table: text, a number, figures with reported ones beside them, words, nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

MISSING = "–"
Style = Literal["plain", "bold", "italic"]


class Span(NamedTuple):
    """A piece of text in one style."""

    text: str
    style: Style = "plain"


@dataclass(frozen=True)
class Text:
    """A name or a sentence."""

    text: str

    def spans(self) -> list[Span]:
        """The text as it is."""
        return [Span(self.text)]

    @property
    def value(self) -> str:
        """What to sort by."""
        return self.text


@dataclass(frozen=True)
class Number:
    """A number and how it is written; `Number.of` writes it with a number of decimals.

    Args:
        value: What is sorted by, and written to CSV.
        text: What is shown.
        bold: Whether it stands out.
    """

    value: float
    text: str
    bold: bool = False

    @classmethod
    def of(cls, value: float, decimals: int = 0, *, signed: bool = False, bold: bool = False) -> Number:
        """A number with so many decimals, with its sign if asked for."""
        return cls(round(value, max(decimals, 6)), f"{value:{'+' if signed else ''},.{decimals}f}", bold)

    def spans(self) -> list[Span]:
        """The number as it is shown."""
        return [Span(self.text, "bold" if self.bold else "plain")]


@dataclass(frozen=True)
class Figures:
    """Our figures, and the reported ones beside them.

    Args:
        ours: One or more, such as those of NN and CSLS; None where one is missing.
        reported: As many; empty where nothing is reported for a setup of this kind.
        best: The places of figures that are the best of their row.
        share: Over how many of how many directions a mean goes, if not over all.
        decimals: How many are shown.
    """

    ours: tuple[float | None, ...]
    reported: tuple[float | None, ...] = ()
    best: frozenset[int] = frozenset()
    share: tuple[int, int] | None = None
    decimals: int = 2

    def spans(self) -> list[Span]:
        """Ours; in italics and parentheses the reported ones; in brackets how many directions."""
        if not self.has_any:
            return [Span(MISSING)]
        spans: list[Span] = []
        for place, value in enumerate(self.ours):
            if place:
                spans.append(Span("/"))
            spans.append(Span(self._shown(value), "bold" if place in self.best else "plain"))
        if self.share:
            spans.append(Span(f" [{self.share[0]}/{self.share[1]}]"))
        if self.reported:
            spans += [Span(" "), Span(f"({'/'.join(map(self._shown, self.reported))})", "italic")]
        return spans

    @property
    def has_any(self) -> bool:
        """Whether any figure, ours or reported, is there."""
        return any(value is not None for value in (*self.ours, *self.reported))

    @property
    def value(self) -> float | None:
        """What to sort by: the last of ours."""
        return self.ours[-1]

    def _shown(self, value: float | None) -> str:
        return MISSING if value is None else f"{value:.{self.decimals}f}"


@dataclass(frozen=True)
class Words:
    """Words, of which those that are right stand out."""

    words: tuple[str, ...]
    right: frozenset[str] = frozenset()

    def spans(self) -> list[Span]:
        """The words, commas between them."""
        spans: list[Span] = []
        for word in self.words:
            if spans:
                spans.append(Span(", "))
            spans.append(Span(word, "bold" if word in self.right else "plain"))
        return spans or [Span(MISSING)]

    @property
    def value(self) -> str:
        """What to sort by."""
        return ", ".join(self.words)


@dataclass(frozen=True)
class Missing:
    """Nothing."""

    value: None = None

    def spans(self) -> list[Span]:
        """A dash."""
        return [Span(MISSING)]


Cell = Text | Number | Figures | Words | Missing

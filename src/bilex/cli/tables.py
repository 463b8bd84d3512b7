"""Tables that more than one command shows."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from bilex.translator import Answer, Calibration, Translator


def answers_table(answers: Iterable[Answer], title: str | None = None) -> Table:
    """Words and their translations, one a line."""
    table = Table(title=title, title_justify="left")
    table.add_column("word")
    table.add_column("translation")
    table.add_column("score", justify="right")
    table.add_column("confidence", justify="right")
    for answer in answers:
        mark = "" if answer.origin == "vocabulary" else f" (from {answer.origin})"
        for place, found in enumerate(answer):
            table.add_row(
                f"{answer.word}{mark}" if place == 0 else "",
                found.word,
                f"{found.score:.3f}",
                "–" if found.confidence is None else f"{found.confidence:.0%}",
            )
        table.add_section()
    return table


def calibration_lines(calibration: Calibration) -> list[str]:
    """What the held-out seeds say, one sentence a direction."""
    lines = []
    for direction in ("forward", "backward"):
        part = calibration.parts.get((direction, "csls"))  # type: ignore[call-overload]
        if part is not None:
            lines.append(
                f"{direction}: P@1 {part.accuracy:.1%} (CSLS) on {part.words} held-out seed words; "
                f"calibration error {part.error:.3f} ({part.error_by_chance:.3f} by chance alone)"
            )
    return lines or [f"no confidences: {calibration.note}"]


def unseen_words(translator: Translator, count: int) -> list[str]:
    """Frequent source words that are no seeds; words of five letters and more say more than "from"."""
    seeds = {source for source, _ in translator.seeds.pairs}
    found: list[str] = []
    for word in translator.space.source.index_to_key:
        if len(word) >= 5 and word.isalpha() and word not in seeds:
            found.append(word)
            if len(found) == count:
                break
    return found

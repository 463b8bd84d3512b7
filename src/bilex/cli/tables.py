"""Tables that more than one command shows."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from bilex.model import Answer, Translation, Translator


def answers_table(
    answers: Iterable[Answer],
    title: str | None = None,
    *,
    languages: tuple[str, str] = ("word", "translation"),
) -> Table:
    """Words and their translations, one per line."""
    table = Table(title=title, title_justify="left")
    for heading in languages:
        table.add_column({"source": "word", "target": "translation"}.get(heading, heading))
    table.add_column("score", justify="right")
    table.add_column("confidence", justify="right")
    for answer in answers:
        mark = _mark(answer)
        for place, found in enumerate(answer):
            table.add_row(
                f"{answer.word}{mark}" if place == 0 else "",
                f"{found.word} (composed)" if found.composed else found.word,
                f"{found.score:.3f}",
                sureness(found),
            )
        table.add_section()
    return table


def _mark(answer: Answer) -> str:
    """Where the vector of a word came from, if not from the vocabulary."""
    if answer.composed:
        return " (composed)"
    return "" if answer.origin == "vocabulary" else f" (from {answer.origin})"


def sureness(found: Translation) -> str:
    """How sure a translation is: known from the seeds, or so many per cent."""
    if found.known:
        return "known"
    return "–" if found.confidence is None else f"{found.confidence:.0%}"


def calibration_lines(translator: Translator) -> list[str]:
    """How far the confidences can be trusted, one sentence per direction."""
    lines = []
    for direction in ("forward", "backward"):
        part = translator.calibration.parts.get((direction, "csls"))  # type: ignore[call-overload]
        if part is not None:
            query_side, key_side = translator.provenance.language_names(direction)  # type: ignore[arg-type]
            beyond = 100 * (part.error - part.error_by_chance)
            off = f"off by about {beyond:.0f} points" if beyond >= 1 else "right, as far as so few words show"
            lines.append(
                f"Confidences, {query_side} to {key_side}: learned on {part.words} held-out seed words, and "
                f"{off} there."
            )
    return lines or [f"There are no confidences ({translator.calibration.note})."]


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

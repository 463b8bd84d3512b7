"""The card of a model: from what, how and how well it was made, for people."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from bilex.translator.expectation import languages_of, sentences
from bilex.visible import visible

if TYPE_CHECKING:
    from bilex.translator.core import Translator

_LOOKED_AT = 1000  # words, for one of letters alone that can be pasted into a shell


def card(translator: Translator) -> str:
    """The README.md of a model folder."""
    made = translator.provenance
    parts = [
        f"# A bilex translation model: {' and '.join(map(_shown, translator.languages))}",
        _from_what(translator, made),
        _how(made),
        _how_well(translator),
        _use(translator),
    ]
    return "\n\n".join(parts) + "\n"


def _from_what(translator: Translator, made: dict[str, Any]) -> str:
    space = translator.space
    pairs, covered = made.get("seed_pairs", len(translator.seeds)), made.get("seed_pairs_covered", "?")
    case = "lower-cased" if translator.lowercase else "case kept"
    rows = [
        (translator.languages[0], made.get("source_file"), len(space.source), made.get("source_dim")),
        (translator.languages[1], made.get("target_file"), len(space.target), made.get("target_dim")),
    ]
    lines = [
        "## From what",
        "",
        "| language | vectors | words | dimension |",
        "|---|---|---|---|",
        *(
            f"| {_shown(side)} | {_shown(file or 'given in a program')} | {words:,} | {dim} |"
            for side, file, words, dim in rows
        ),
        "",
        f"Seed dictionary: {_shown(made.get('seeds', translator.seeds.name))}; {covered} of its {pairs} "
        f"pairs have both words in the vectors. Words are {case}.",
    ]
    return "\n".join(lines)


def _how(made: dict[str, Any]) -> str:
    settings = made.get("settings", {})
    lines = [
        "## How",
        "",
        f"Method `{made.get('method', 'unknown')}`: {made.get('method_summary', '')}. "
        f"Fitted in {made.get('fit_seconds', '?')} s with bilex {made.get('bilex_version', '?')} "
        f"on {made.get('made', '?')}.",
    ]
    if made.get("arithmetic"):
        jobs = ", ".join(f"{job} in {precision}" for job, precision in made["arithmetic"].items())
        lines.append(f"Computed on {made.get('processor', 'a CPU')}: {jobs}.")
    lm = made.get("language_model")
    if lm:
        tuned = "tuned on" if lm.get("tuned") else "not tuned; combined through"
        lines.append(
            f"Combined (stage C2) with the language model `{lm['lm']}`, {tuned} {lm.get('pairs', '?')} pairs "
            f"of which {lm.get('seed_pairs', '?')} are seeds; its weight λ is {lm.get('mixing', '?')}."
        )
    trial = made.get("trial", {})
    if trial.get("form") is not None or trial.get("mixing") is not None:
        lines.append(f"Decided on {trial.get('held_out_words', 0)} held-out seed words: {trial.get('note')}.")
    if settings:
        lines += ["", "| setting | value |", "|---|---|"]
        lines += [f"| {_shown(name)} | {_shown(value)} |" for name, value in settings.items()]
    return "\n".join(lines)


def _how_well(translator: Translator) -> str:
    calibration, made = translator.calibration, translator.provenance
    lines = ["## How well", "", *sentences(made, "THIS_FOLDER"), ""]
    if not calibration.parts:
        return "\n".join([*lines, f"There are no confidences: {calibration.note}."])
    lines += [
        "On seed words held out of a second fit, made for this table and the confidences only (the model "
        "itself learned from all seeds); no test dictionary was looked at. These are words of the kind "
        "that the seed dictionary holds, as a rule frequent ones.",
        "",
        "| direction | search | held-out words | P@1 | calibration error | of exact confidences |",
        "|---|---|---|---|---|---|",
    ]
    for (direction, method), part in calibration.parts.items():
        languages = " to ".join(map(_shown, languages_of(made, direction)))
        lines.append(
            f"| {languages} | {method.upper()} | {part.words} | {part.accuracy:.1%} | {part.error:.3f} "
            f"| {part.error_by_chance:.3f} |"
        )
    lines += [
        "",
        "*Calibration error* is the mean gap between stated confidence and accuracy (expected calibration "
        "error, ten bins, cross-validated); the last column is what exactly true confidences would show "
        "on so few words.",
    ]
    return "\n".join(lines)


def _shown(value: object) -> str:
    """Text of others inside Markdown: one line that ends no cell and is no HTML."""
    text = html.escape(visible(" ".join(str(value).split())), quote=False)
    return text.replace("|", "\\|").replace("`", "'")


def _use(translator: Translator) -> str:
    frequent = translator.space.source.index_to_key[:_LOOKED_AT]
    word = next((word for word in frequent if word.isalpha()), "WORD")
    return "\n".join(
        [
            "## Use",
            "",
            "```",
            f"bilex translate THIS_FOLDER {word}",
            "bilex lexicon THIS_FOLDER -o dictionary.tsv --mutual",
            "bilex evaluate THIS_FOLDER test-dictionary.tsv",
            "```",
        ]
    )

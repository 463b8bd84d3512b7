"""The card of a model, for people, and what to expect of it in words."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

from bilex.core.languages import language_name
from bilex.core.text import escape_control_characters
from bilex.fit.expectation import Expectation

if TYPE_CHECKING:
    from bilex.model.many import ManyLanguages
    from bilex.model.provenance import Provenance
    from bilex.model.translator import Translator


_FEW_SEEDS = 200
_MANY_SEEDS = 1000  # a large dictionary holds rare words, whatever is covered


def sentences(made: Provenance, model: str = "MODEL") -> list[str]:
    """What to expect, and what to do if that is little; `model` is its name in commands to copy."""
    expected, pairs = made.expectation, made.seed_pairs_covered
    if not expected.measured:
        why = "there were no seeds to test it on" if not made.seed_pairs else expected.how
        stated = [
            f"How good this model is was not measured ({why}): run 'bilex evaluate {model}' on a test list."
        ]
        if 0 < pairs < _FEW_SEEDS:
            stated.append(f"Expect little of it. {_advice(made, pairs, model)}")
        return stated
    stated = [_shares(expected, made)]
    if expected.of_use == "none":
        stated.append(f"That is too little to use this model. {_advice(made, pairs, model)}")
    elif expected.of_use == "with care":
        stated.append(
            f"Look at several answers of each word (-k 5) before you use one. {_advice(made, pairs, model)}"
        )
    return stated


def _shares(expected: Expectation, made: Provenance) -> str:
    """One sentence with the shares of both directions."""
    clauses = []
    for side, words in expected.words.items():
        query_side, key_side = made.language_names(side)  # type: ignore[arg-type]
        share, low, high = expected.of(side)
        clause = f"{query_side} to {key_side} {share:.0%} ({low:.0%} to {high:.0%})"
        if not expected.shares:
            clause += f", counted on {words} seed words"
        clauses.append(clause)
    how = {
        "held out": "Dictionaries differ; nine of ten lie in the range",
        "in turn": "The seed words were each predicted from the others",
    }[expected.how]
    return (
        "Expect the first answer to be right for this share of the words of a test dictionary: "
        f"{'; '.join(clauses)}. {how}."
    )


def _advice(made: Provenance, pairs: int, model: str) -> str:
    if pairs < _FEW_SEEDS:
        without = (
            ", or none at all (without --seeds the method finds its own start)" if made.seeds_optional else ""
        )
        return f"{pairs} seed pairs are few: give more, a thousand if you can{without}."
    if made.seed_pairs > 2 * pairs and pairs < _MANY_SEEDS:
        return "Most seeds are not in the vectors: check that words are written alike in both."
    return (
        "With so many seeds the vectors are the likely reason (little text, or texts of different kinds), or "
        f"wrong seeds: see 'bilex info {model} --doubtful'."
    )


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


def _from_what(translator: Translator, made: Provenance) -> str:
    space = translator.space
    case = "lower-cased" if translator.lowercase else "case kept"
    rows = "".join(
        f"\n| {_shown(side)} | {_shown(file or 'given in a program')} | {len(words):,} | {known(dim)} |"
        for side, file, words, dim in (
            (translator.languages[0], made.source_file, space.source, made.source_dim),
            (translator.languages[1], made.target_file, space.target, made.target_dim),
        )
    )
    return (
        f"## From what\n\n| language | vectors | words | dimension |\n|---|---|---|---|{rows}\n\n"
        f"Seed dictionary: {_shown(made.seeds)}; {made.seed_pairs_covered} of its {made.seed_pairs} "
        f"pairs have both words in the vectors. Words are {case}."
    )


def known(number: float | None) -> str:
    """A number of a model's memory, or a question mark."""
    return "?" if number is None or math.isnan(number) else str(number)


def _how(made: Provenance) -> str:
    lines = [
        "## How",
        "",
        f"Method `{made.method}`: {made.method_summary}. Fitted in {known(made.fit_seconds)} s with bilex "
        f"{made.bilex_version} on {made.made}.",
    ]
    if made.arithmetic:
        jobs = ", ".join(f"{job} in {precision}" for job, precision in made.arithmetic.items())
        lines.append(f"Computed on {made.processor}: {jobs}.")
    lm = made.language_model
    if lm is not None:
        tuned = "tuned on" if lm.tuned else "not tuned; combined through"
        lines.append(
            f"Combined (stage C2) with the language model `{lm.lm}`, {tuned} {lm.pairs} pairs "
            f"of which {lm.seed_pairs} are seeds; its weight λ is {lm.mixing}."
        )
    trial = made.trial
    if trial.form is not None or trial.mixing is not None:
        lines.append(f"Decided on {trial.held_out_words} held-out seed words: {trial.note}.")
    if made.settings:
        lines += ["", "| setting | value |", "|---|---|"]
        lines += [f"| {_shown(name)} | {_shown(value)} |" for name, value in made.settings.items()]
    return "\n".join(lines)


def _how_well(translator: Translator) -> str:
    calibration, made = translator.calibration, translator.provenance
    lines = ["## How well", "", *sentences(made, "THIS_FOLDER"), ""]
    if not calibration.parts:
        return "\n".join([*lines, f"There are no confidences: {calibration.note}."])
    lines.append(
        "On seed words held out of a second fit, made for this table and the confidences only (the model "
        "itself learned from all seeds); no test dictionary was looked at. These are words of the kind "
        "that the seed dictionary holds, as a rule frequent ones.\n\n"
        "| direction | search | held-out words | P@1 | calibration error | of exact confidences |\n"
        "|---|---|---|---|---|---|"
    )
    for (direction, method), part in calibration.parts.items():
        languages = " to ".join(map(_shown, made.language_names(direction)))
        lines.append(
            f"| {languages} | {method.upper()} | {part.words} | {part.accuracy:.1%} | {part.error:.3f} "
            f"| {part.error_by_chance:.3f} |"
        )
    lines.append(
        "\n*Calibration error* is the mean gap between stated confidence and accuracy (expected calibration "
        "error, ten bins, cross-validated); the last column is what exactly true confidences would show "
        "on so few words."
    )
    return "\n".join(lines)


def _shown(value: object) -> str:
    """Text of others inside Markdown: one line that ends no cell and is no HTML."""
    text = html.escape(escape_control_characters(" ".join(str(value).split())), quote=False)
    return text.replace("|", "\\|").replace("`", "'")


def _use(translator: Translator) -> str:
    frequent = translator.space.source.index_to_key[:_LOOKED_AT]
    word = next((word for word in frequent if word.isalpha()), "WORD")
    return (
        f"## Use\n\n```\nbilex translate THIS_FOLDER {word}\n"
        "bilex lexicon THIS_FOLDER -o dictionary.tsv --mutual\n"
        "bilex evaluate THIS_FOLDER test-dictionary.tsv\n```"
    )


def many_card(many: ManyLanguages) -> str:
    """The README.md of a model folder."""
    made, codes = many.provenance, many.languages
    names = [language_name(code) for code in codes]
    vectors = "".join(
        f"\n| {name} | {code} | {_shown(made.files.get(code) or 'given in a program')} | {len(words):,} |"
        for name, (code, words) in zip(names, many.vocabularies.items(), strict=True)
    )
    seeds = "".join(
        f"\n| {a}-{b} | {len(pairs):,} | {_shown(pairs.name)} |" for (a, b), pairs in many.seeds.items()
    )
    measured = "".join(
        f"\n| {' to '.join(two[:: 1 if way == 'forward' else -1])} | {part.words} | {part.accuracy:.1%} |"
        for two, calibration in many.calibrations.items()
        for (way, retrieval), part in calibration.parts.items()
        if retrieval == "csls"
    )
    how_well = (
        "On seed words that a second fit had not seen (CSLS); no test dictionary was read.\n\n"
        f"| direction | held-out words | P@1 |\n|---|---|---|{measured}"
    )
    return f"""# A bilex translation model: {", ".join(names[:-1])} and {names[-1]}

All languages are in one space: translate from any to any.

## From what

| language | code | vectors | words |
|---|---|---|---|{vectors}

| languages | seed pairs | learned from |
|---|---|---|{seeds}

Words are {"lower-cased" if many.lowercase else "in their own case"}.

## How

{made.method_summary}; made with bilex {made.bilex_version} on {made.made}.

## How well

{how_well if measured else "Not measured: no seeds were held out."}

## Use

```
bilex translate THIS_FOLDER WORD --from {codes[0]} --to {codes[1]}
bilex lexicon THIS_FOLDER --from {codes[0]} --to {" ".join(codes[1:])} -o FILE
bilex evaluate THIS_FOLDER --tests FOLDER_OF_TEST_DICTIONARIES
```
"""

"""From what and how a model was made: what its folder records, and its card for people."""

from __future__ import annotations

import html
import math
import platform
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import bilex
from bilex.core.languages import language_name
from bilex.core.text import escape_control_characters
from bilex.core.typed_json import as_json
from bilex.fit.report import FitReport, TrialReport, now
from bilex.model.space import SIDES, Direction, directed

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner
    from bilex.encoders.settings import C2
    from bilex.model.many import ManyLanguages

_FEW_SEEDS = 200
_MANY_SEEDS = 1000  # a large dictionary holds rare words, whatever is covered
# Examples are words of five letters and more, after the most frequent ones, which are function words.
_SHORTEST_EXAMPLE, _FUNCTION_WORDS, _LOOKED_AT = 5, 1000, 1000


@dataclass(frozen=True, kw_only=True)
class Retrained:
    """How often a model learned from decisions of people, and the pairs of the last time."""

    rounds: int
    accepted: int
    rejected: int


@dataclass(frozen=True, kw_only=True)
class Provenance(FitReport):
    """The report of a model's fit, and what else the model records.

    Attributes:
        encoder_settings: Those of `C2`; empty without a language model.
        source_language: The code of the source language; None where it is not known.
        target_language: The same for the target language.
        composed: Phrases of the seeds that were added to each vocabulary, composed of their words.
        retrained: What came after the fit; None where nothing did.
        recalibrated: How an audit changed the confidences, as the workbench recorded it; empty if none did.
    """

    encoder_settings: Mapping[str, Any] = field(default_factory=dict)
    source_language: str | None = None
    target_language: str | None = None
    composed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    retrained: Retrained | None = None
    recalibrated: Mapping[str, Any] = field(default_factory=dict)

    def aligner(self) -> Aligner | None:
        """The aligner with its settings, not fitted; None where the method is not known.

        Settings of another version of the method are left out.
        """
        from bilex.aligners import methods

        method = methods().get(self.method)
        if method is None:
            return None
        known = method.settings_fields()
        return method(**{name: value for name, value in self.settings.items() if name in known})

    def encoder(self) -> C2 | None:
        """The user's settings of stage C2; None without a language model."""
        from bilex.encoders.settings import C2

        return C2.from_settings(dict(self.encoder_settings)) if self.encoder_settings else None

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The codes of both languages, as far as they are known."""
        return self.source_language, self.target_language

    def language_names(self, direction: Direction = "forward") -> tuple[str, str]:
        """The names of the query and the key language; "source" and "target" where they are not known."""
        source = language_name(self.source_language) if self.source_language else "source"
        target = language_name(self.target_language) if self.target_language else "target"
        return directed((source, target), direction)

    def as_dict(self) -> dict[str, Any]:
        """For JSON, without entries that are empty."""
        optional = ("encoder_settings", "composed", "retrained", "recalibrated")
        return {name: part for name, part in super().as_dict().items() if part or name not in optional}


@dataclass(frozen=True, kw_only=True)
class JointReport:
    """What aligning several languages together reports; a pair of languages is written as "en-fi".

    `composed_pairs` share a translation in a third language; `losses` are those of each update, by round;
    `stopped` says where the fit broke, "" if it did not.
    """

    seed_pairs: Mapping[str, int]
    pairs_of_the_last_round: Mapping[str, int]
    composed_pairs: Mapping[str, int] = field(default_factory=dict)
    losses: tuple[tuple[float, ...], ...] = ()
    stopped: str = ""
    trial: TrialReport = field(default_factory=TrialReport)


@dataclass(frozen=True, kw_only=True)
class JoinReport:
    """The models of two languages that were joined, and the mean cosine of each language with the result."""

    models: tuple[str, ...]
    agreement: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class ManyProvenance:
    """What a model of many languages records; the names are those of `Provenance`.

    `method` is "joint" or "join"; `files` are the vector files of the languages, None where there was none.
    """

    method: str = "unknown"
    method_summary: str = "unknown"
    settings: Mapping[str, Any] = field(default_factory=dict)
    report: JointReport | JoinReport | None = None
    fit_seconds: float = math.nan
    files: Mapping[str, str | None] = field(default_factory=dict)
    dimensions: Mapping[str, int] = field(default_factory=dict)
    bilex_version: str = bilex.__version__
    python_version: str = field(default_factory=platform.python_version)
    made: str = field(default_factory=now)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return as_json(self)


def sentences(made: Provenance, model: str = "MODEL") -> list[str]:
    """What to expect, and what to do if that is little; `model` is its name in commands to copy."""
    expected, pairs = made.expectation, made.seed_pairs_covered
    if not expected.measured:
        why = "there were no seeds to test it on" if not made.seed_pairs else expected.how
        stated = [
            f"How good this model is was not measured ({why}): run 'bilex evaluate {model}' on a test list."
        ]
        if 0 < pairs < _FEW_SEEDS:
            stated.append(f"Expect little of it. {_advice(made, model)}")
        return stated
    clauses = []
    for side, words in expected.words.items():
        query_side, key_side = made.language_names(side)  # type: ignore[arg-type]
        share, low, high = expected.of(side)
        counted = "" if expected.shares else f", counted on {words} seed words"
        clauses.append(f"{query_side} to {key_side} {share:.0%} ({low:.0%} to {high:.0%}){counted}")
    how = {
        "held out": "Dictionaries differ; nine of ten lie in the range",
        "in turn": "The seed words were each predicted from the others",
    }[expected.how]
    stated = [
        "Expect the first answer to be right for this share of the words of a test dictionary: "
        f"{'; '.join(clauses)}. {how}."
    ]
    if expected.of_use == "none":
        stated.append(f"That is too little to use this model. {_advice(made, model)}")
    elif expected.of_use == "with care":
        look = "Look at several answers of each word (-k 5) before you use one."
        stated.append(f"{look} {_advice(made, model)}")
    return stated


def _advice(made: Provenance, model: str) -> str:
    pairs = made.seed_pairs_covered
    if pairs < _FEW_SEEDS:
        without = ", or none at all (without --seeds the method finds its own start)"
        optional = without if made.seeds_optional else ""
        return f"{pairs} seed pairs are few: give more, a thousand if you can{optional}."
    if made.seed_pairs > 2 * pairs and pairs < _MANY_SEEDS:
        return "Most seeds are not in the vectors: check that words are written alike in both."
    return (
        "With so many seeds the vectors are the likely reason (little text, or texts of different kinds), or "
        f"wrong seeds: see 'bilex info {model} --doubtful'."
    )


def known(number: float | None) -> str:
    """A recorded number, or a question mark where it is not known."""
    return "?" if number is None or math.isnan(number) else str(number)


def example_words(words: Sequence[str], count: int, but: Container[str] = ()) -> list[str]:
    """Words to show or to try: of letters alone, frequent but no function words, as far as there are such.

    Args:
        words: A vocabulary, most frequent words first.
        count: The number of examples.
        but: Words to leave out.
    """
    first = min(_FUNCTION_WORDS, len(words) // 10)
    ordered = (words[rank] for rank in chain(range(first, len(words)), range(first)))
    plain = (word for word in ordered if word.isalpha() and word not in but)
    found = list(islice(plain, _LOOKED_AT))
    return sorted(found, key=lambda word: len(word) < _SHORTEST_EXAMPLE)[:count]


def card_of(model: ManyLanguages) -> str:
    """The README.md of a model folder."""
    made, codes = model.provenance, model.languages
    words = list(model.words.values())
    if isinstance(made, Provenance):
        names = list(made.language_names())
        files, dimensions = [made.source_file, made.target_file], [made.source_dim, made.target_dim]
        words = [count - len(made.composed.get(side, ())) for side, count in zip(SIDES, words, strict=True)]
        covered = f"; {made.seed_pairs_covered} of its {made.seed_pairs} pairs have both words in the vectors"
        learned = f"Seed dictionary: {_plain(made.seeds)}{covered}."
        options = [""] * 3
    else:
        names = [language_name(code) for code in codes]
        files = [made.files.get(code) for code in codes]
        dimensions = [made.dimensions.get(code) for code in codes]
        rows = (("-".join(pair), f"{len(seeds):,}", seeds.name) for pair, seeds in model.seeds.items())
        learned = _table(("languages", "seed pairs", "learned from"), rows)
        pair = f" --from {codes[0]} --to {codes[1]}"
        options = [pair, f" --from {codes[0]} --to {' '.join(codes[1:])}", pair]
    vectors = _table(
        ("language", "vectors", "words", "dimension"),
        (
            (name, file or "given in a program", f"{count:,}", known(dimension))
            for name, file, count, dimension in zip(names, files, words, dimensions, strict=True)
        ),
    )
    word = next(iter(example_words(model.vocabularies[codes[0]].index_to_key, 1)), "WORD")
    return f"""# A bilex translation model: {_plain(", ".join(names[:-1]))} and {_plain(names[-1])}

## From what

{vectors}

{learned}

Words are {"lower-cased" if model.lowercase else "in their own case"}.

## How

{_how(made)}

## How well

{_how_well(model)}

## Use

```
bilex translate THIS_FOLDER {word}{options[0]}
bilex lexicon THIS_FOLDER{options[1]} -o dictionary.tsv --mutual
bilex evaluate THIS_FOLDER test-dictionary.tsv{options[2]}
```
"""


def _how(made: Provenance | ManyProvenance) -> str:
    lines = [
        f"Method `{made.method}`: {made.method_summary}. Fitted in {known(made.fit_seconds)} s with bilex "
        f"{made.bilex_version} on {made.made}."
    ]
    if isinstance(made, Provenance):
        if made.arithmetic:
            jobs = ", ".join(f"{job} in {precision}" for job, precision in made.arithmetic.items())
            lines.append(f"Computed on {made.processor}: {jobs}.")
        if (lm := made.language_model) is not None:
            tuned = "tuned on" if lm.tuned else "not tuned; combined through"
            lines.append(
                f"Combined (stage C2) with the language model `{lm.lm}`, {tuned} {lm.pairs} pairs "
                f"of which {lm.seed_pairs} are seeds; its weight λ is {lm.mixing}."
            )
        if made.trial.mixing is not None or made.trial.extent is not None:
            lines.append(f"Decided on {made.trial.held_out_words} held-out seed words: {made.trial.note}.")
    if made.settings:
        lines += ["", _table(("setting", "value"), made.settings.items())]
    return "\n".join(lines)


def _how_well(model: ManyLanguages) -> str:
    """What to expect, and the metrics of held-out seeds."""
    made = model.provenance
    names = made.language_names() if isinstance(made, Provenance) else None
    rows = [
        (
            " to ".join((names or list(map(language_name, pair)))[:: 1 if direction == "forward" else -1]),
            retrieval.upper(),
            part.words,
            f"{part.accuracy:.1%}",
            f"{part.error:.3f}",
            f"{part.error_by_chance:.3f}",
        )
        for pair, calibration in model.calibrations.items()
        for (direction, retrieval), part in calibration.parts.items()
    ]
    expected = "\n".join(sentences(made, "THIS_FOLDER")) + "\n\n" if isinstance(made, Provenance) else ""
    if not rows:
        notes = {calibration.note: None for calibration in model.calibrations.values()}
        return f"{expected}There are no confidences: {'; '.join(notes) or 'no seeds were held out'}."
    headings = ("direction", "search", "held-out words", "P@1", "calibration error", "of exact confidences")
    return f"""{expected}On seed words held out of a second fit, made for this table and the confidences only
(the model itself learned from all seeds); no test dictionary was read. These are words of the kind that
the seed dictionary holds, as a rule frequent ones.

{_table(headings, rows)}

*Calibration error* is the mean gap between stated confidence and accuracy (expected calibration error, ten
bins, cross-validated); the last column is what exactly true confidences would show on so few words."""


def _table(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    headings = tuple(headings)
    lines = (headings, ["---"] * len(headings), *([_plain(cell) for cell in row] for row in rows))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _plain(value: object) -> str:
    """Foreign text inside Markdown: one line that ends no cell and is no HTML."""
    text = html.escape(escape_control_characters(" ".join(str(value).split())), quote=False)
    return text.replace("|", "\\|").replace("`", "'")

"""Any number of languages in one space, and a translator for every two of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from bilex.aligners.maps import Map
from bilex.core.errors import BilexError, nearest_name
from bilex.core.hub import OnTheHub
from bilex.core.languages import code_of
from bilex.core.progress import SILENT, Progress
from bilex.fit.expectation import from_calibration
from bilex.lexicon import Lexicon
from bilex.model import Answer, Calibration, Translator
from bilex.model.provenance import ManyProvenance, Provenance
from bilex.model.space import Direction, Floats, Side, Space
from bilex.model.storage import Two, is_many
from bilex.model.unknown import FromSubwords
from bilex.vectors import Subwords, WordVectors

if TYPE_CHECKING:
    from bilex.model.filters import Keep
    from bilex.model.many.polyglot import Polyglot


Terms = tuple[Floats, Floats]
_CODE = re.compile("[A-Za-z0-9_]+")
_NO_CONFIDENCES = Calibration(note="not calibrated: no seeds of these two languages were held out")


@dataclass(eq=False, repr=False)
class ManyLanguages(OnTheHub):
    """Translates words from any of several languages to any other.

    Args:
        vocabularies: For each language, by its code, its words with their vectors in the common space.
        maps: Take the vectors of each language, as they come from their file, into the common space.
        seeds: The word pairs that were learned from, by two languages; the first language's word first.
        calibrations: From scores to confidences, by two languages.
        subwords: fastText's character n-grams of the languages that have them.
        provenance: From what and how it was made.
        lowercase: Whether the vocabularies were lower-cased.
        device: Where searches run.

    Examples:
        >>> many = ManyLanguages.load("many")  # doctest: +SKIP
        >>> many.translate("koira", "fi", "ru")[0].word  # doctest: +SKIP
        'собака'
    """

    vocabularies: dict[str, WordVectors]
    maps: dict[str, Map]
    seeds: dict[Two, Lexicon] = field(default_factory=dict)
    calibrations: dict[Two, Calibration] = field(default_factory=dict)
    subwords: dict[str, Subwords] = field(default_factory=dict)
    provenance: ManyProvenance = field(default_factory=ManyProvenance)
    lowercase: bool = True
    device: str = "auto"
    _terms: dict[Two, Terms] = field(init=False, default_factory=dict)
    _translators: dict[Two, Translator] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.vocabularies) < 2:
            raise BilexError("at least two languages are needed for a space of many.")
        for code in self.vocabularies:
            if not _CODE.fullmatch(code):
                raise BilexError(f"'{code}' cannot be a language's code; use letters, digits and _ alone.")
        if set(self.maps) != set(self.vocabularies):
            raise BilexError("every language needs a map and a vocabulary.")

    def __repr__(self) -> str:
        sizes = ", ".join(f"{code} {len(words):,}" for code, words in self.vocabularies.items())
        return f"ManyLanguages({sizes} words)"

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool = True, device: str = "auto") -> ManyLanguages:
        """Open a saved model of many languages; its vectors are memory-mapped.

        Args:
            folder: What `save` wrote.
            verify: Whether every file is checked against its checksum.
            device: Where searches run.

        Raises:
            BilexError: It is no such folder, comes from a newer version, or a file was damaged.
        """
        from bilex.model.storage import load_many

        return load_many(folder, verify=verify, device=device)

    def save(self, folder: str | Path, *, progress: Progress = SILENT) -> None:
        """Write a folder that `load` opens, all of it or nothing.

        An earlier model of many languages of that name is replaced; any other folder never is.

        Args:
            folder: The folder.
            progress: Shows how far the terms of CSLS are, which are computed for every two languages.

        Raises:
            BilexError: The folder cannot be written.
        """
        from bilex.model.storage import save_many

        save_many(self, folder, progress)

    @property
    def languages(self) -> list[str]:
        """The codes of the languages."""
        return list(self.vocabularies)

    @property
    def language_codes(self) -> list[str]:
        """The same, for the card of a repository."""
        return self.languages

    @property
    def language_pairs(self) -> list[Two]:
        """Every two languages once, in the order of `languages`."""
        return list(itertools.combinations(self.vocabularies, 2))

    def code(self, language: str) -> str:
        """The code under which a language is stored, from its code or its name.

        Raises:
            BilexError: The model does not hold it.
        """
        code = code_of(language) or language
        for known in (code, language):
            if known in self.vocabularies:
                return known
        raise BilexError(
            f"the model has no language '{language}'; it has {', '.join(self.vocabularies)}."
            f"{nearest_name(language, self.vocabularies)}"
        )

    def pair(self, source: str, target: str) -> Translator:
        """A translator of two of the languages, with everything that a model of two languages can do.

        Args:
            source: The code or name of one language.
            target: Of another.

        Raises:
            BilexError: The model does not hold one of them, or they are the same.
        """
        two = self.code(source), self.code(target)
        if two[0] == two[1]:
            raise BilexError(f"'{source}' and '{target}' are one language; name two.")
        if two not in self._translators:
            self._translators[two] = self._translator(two)
        return self._translators[two]

    def _translator(self, two: Two) -> Translator:
        a, b = two
        space = Space(self.vocabularies[a], self.vocabularies[b], "cosine", self.device)
        r_source, r_target = self.terms(two, space)
        space.keep_neighbourhoods(r_source, r_target)
        maps: dict[Side, Map] = {"source": self.maps[two[0]], "target": self.maps[two[1]]}
        sides: tuple[Side, Side] = ("source", "target")
        ngrams = {
            side: self.subwords[code] for side, code in zip(sides, two, strict=True) if code in self.subwords
        }
        seeds, calibration = self.seeds_of(two), self.calibration_of(two)
        usable = seeds.index(space.source.key_to_index, space.target.key_to_index)
        made = self.provenance
        provenance = Provenance(
            method=made.method,
            method_summary=made.method_summary,
            settings=made.settings,
            fit_seconds=made.fit_seconds,
            source_file=made.files.get(a),
            target_file=made.files.get(b),
            source_dim=made.dimensions.get(a),
            target_dim=made.dimensions.get(b),
            seeds=seeds.name,
            seed_pairs=len(seeds),
            seed_pairs_covered=len(usable),
            expectation=from_calibration(calibration),
            bilex_version=made.bilex_version,
            python_version=made.python_version,
            made=made.made,
            source_language=a,
            target_language=b,
        )
        return Translator.of_parts(
            space,
            maps["source"],
            maps["target"],
            calibration,
            [FromSubwords(ngrams, maps)] if ngrams else [],
            seeds,
            provenance,
            self.lowercase,
        )

    def terms(self, two: Two, space: Space | None = None) -> Terms:
        """CSLS's terms of the words of two languages; computed once, then kept."""
        a, b = two
        if (b, a) in self._terms:
            return self._terms[b, a][::-1]
        if two not in self._terms:
            if space is None:
                space = Space(self.vocabularies[a], self.vocabularies[b], "cosine", self.device)
            self._terms[two] = space.neighbourhoods()
        return self._terms[two]

    def keep_terms(self, two: Two, terms: Terms) -> None:
        """Take over terms of CSLS that were computed earlier, as when a model is loaded."""
        self._terms[two] = terms

    def seeds_of(self, two: Two) -> Lexicon:
        """The seeds of two languages, the first language's word first; empty if there were none."""
        a, b = two
        if two in self.seeds:
            return self.seeds[two]
        if (b, a) in self.seeds:
            return self.seeds[b, a].swapped()
        return Lexicon([], f"no seeds of {a} and {b}")

    def calibration_of(self, two: Two) -> Calibration:
        """The confidences of two languages, forward from the first to the second."""
        if two in self.calibrations:
            return self.calibrations[two]
        if two[::-1] in self.calibrations:
            return self.calibrations[two[::-1]].swapped()
        return _NO_CONFIDENCES

    @overload
    def translate(self, words: str, source: str, target: str, k: int = 5, **options: Any) -> Answer: ...

    @overload
    def translate(
        self, words: Iterable[str], source: str, target: str, k: int = 5, **options: Any
    ) -> list[Answer]: ...

    def translate(
        self, words: str | Iterable[str], source: str, target: str, k: int = 5, **options: Any
    ) -> Answer | list[Answer]:
        """The best translations of a word, or of each of several.

        Args:
            words: One word or several, of the language `source`.
            source: The code or name of their language.
            target: The language to translate to.
            k: How many translations per word.
            options: Further arguments of `Translator.translate`.
        """
        return self.pair(source, target).translate(words, k, **options)

    def lexicon(
        self,
        source: str,
        targets: Sequence[str],
        *,
        keep_of: Callable[[Translator], Keep | None] | None = None,
        progress: Progress = SILENT,
        **options: Any,
    ) -> Polyglot:
        """A dictionary of several languages: every word of one with its best translation into each other.

        Args:
            source: The code or name of the language whose words are translated.
            targets: The languages to translate them to.
            keep_of: Makes, from the translator of two languages, a filter of words for `Translator.lexicon`.
            progress: Shows how far the work is.
            options: `k`, `mutual`, `min_score`, `min_confidence`, `ranks`, `method` and `model_only` of
                `Translator.lexicon`; they hold for each language by itself.
        """
        from bilex.model.many.polyglot import polyglot

        return polyglot(self, source, targets, keep_of, {**options, "progress": progress})


def open_model(model: str, device: str = "auto") -> Translator | ManyLanguages:
    """A model of two languages or of many, whichever a folder holds."""
    if is_many(model):
        from bilex.model.many.core import ManyLanguages

        return ManyLanguages.load(model, device=device)
    return Translator.load(model, device=device)


def open_pair(
    model: str,
    source: str | None = None,
    target: str | None = None,
    device: str = "auto",
    direction: Direction = "forward",
) -> tuple[Translator, Direction]:
    """The translator of two languages, and the direction in which they go.

    Args:
        model: A model folder.
        source: The language of the words, by code or name; None for the model's own.
        target: The language to translate to.
        device: Where searches run.
        direction: The direction where neither language was given.

    Raises:
        BilexError: The model does not hold one of them, or holds many and it is not clear which are meant.
    """
    opened = open_model(model, device)
    if isinstance(opened, Translator):
        return opened, _direction(model, opened, source, target, direction)
    if source is None or target is None:
        languages = ", ".join(opened.languages)
        raise BilexError(f"{model}: holds {languages}; name two of them with --from and --to.")
    return opened.pair(source, target), direction


def _direction(
    model: str, translator: Translator, source: str | None, target: str | None, otherwise: Direction
) -> Direction:
    """Which way two languages of a model of two go.

    Raises:
        BilexError: It does not know its languages, or holds others.
    """
    if source is None and target is None:
        return otherwise
    known = list(translator.provenance.languages)
    if None in known:
        raise BilexError(
            f"{model}: does not say which languages it holds; leave out --from and --to, and use --reverse "
            "for the other direction."
        )
    wanted = [None if name is None else code_of(name) or name for name in (source, target)]
    ways: dict[Direction, list[Any]] = {"forward": known, "backward": known[::-1]}
    for way, languages in ways.items():
        if all(w in (None, language) for w, language in zip(wanted, languages, strict=True)):
            return way
    named = " to ".join(name or "any" for name in (source, target))
    raise BilexError(f"{model}: translates between {known[0]} and {known[1]}, not {named}.")

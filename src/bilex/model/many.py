"""Any number of languages in one space, a translator for every two of them, and dictionaries of several."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from bilex.aligners.maps import Map
from bilex.core.errors import BilexError, nearest_name
from bilex.core.files import atomic_file
from bilex.core.hub import OnTheHub
from bilex.core.languages import LanguagePair, code_of
from bilex.core.progress import SILENT, Progress
from bilex.fit.calibration import Calibration
from bilex.fit.expectation import from_calibration
from bilex.lexicon import Entry, Lexicon
from bilex.model import Answer, Translator
from bilex.model.provenance import ManyProvenance, Provenance
from bilex.model.space import OPPOSITE, SIDES, Direction, Floats, Space, directed
from bilex.model.storage import load_model, save_model, several_languages
from bilex.model.unknown import FromSubwords, OutOfVocabulary, without_phrases
from bilex.vectors import Subwords, WordVectors
from bilex.vectors.phrases import words_of

if TYPE_CHECKING:
    from bilex.aligners.base import Metric
    from bilex.model.filters import Keep


T = TypeVar("T")
Terms = tuple[Floats, Floats]
CODE = re.compile("[A-Za-z0-9_]+")
_TWO_CODES = re.compile(r"(?<![A-Za-z0-9])([A-Za-z0-9_]+)-([A-Za-z0-9_]+)(?![A-Za-z0-9])")
_NO_CONFIDENCES = Calibration(note="not calibrated: no seeds of these two languages were held out")
_FORMATS = ("tsv", "csv", "jsonl")


@dataclass(eq=False, repr=False)
class ManyLanguages(OnTheHub):
    """Translates words from any of several languages to any other.

    Args:
        vocabularies: For each language, by its code, its words with their vectors in the common space.
        maps: Take the vectors of each language, as they come from their file, into the common space.
        seeds: The word pairs that were learned from, by pair of languages; the first language's word first.
        calibrations: From scores to confidences, by pair of languages.
        subwords: fastText's character n-grams of the languages that have them.
        provenance: From what and how it was made.
        lowercase: Whether the vocabularies were lower-cased.
        device: Where searches run.
        metric: How vectors are compared.
        unknown: Readers of unknown words, in the model of a `Translator`.

    Examples:
        >>> many = ManyLanguages.load("many")  # doctest: +SKIP
        >>> many["fi", "ru"].translate("koira")[0].word  # doctest: +SKIP
        'собака'
    """

    vocabularies: dict[str, WordVectors]
    maps: dict[str, Map]
    seeds: dict[LanguagePair, Lexicon] = field(default_factory=dict)
    calibrations: dict[LanguagePair, Calibration] = field(default_factory=dict)
    subwords: dict[str, Subwords] = field(default_factory=dict)
    provenance: ManyProvenance | Provenance = field(default_factory=ManyProvenance)
    lowercase: bool = True
    device: str = "auto"
    metric: Metric = "cosine"
    unknown: Sequence[OutOfVocabulary] = ()
    csls_terms: dict[LanguagePair, Terms] = field(init=False, default_factory=dict)
    _translators: dict[LanguagePair, Translator] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.vocabularies) < 2:
            raise BilexError("at least two languages are needed for a space of many.")
        for code in self.vocabularies:
            if not CODE.fullmatch(code):
                raise BilexError(f"'{code}' cannot be a language's code; use letters, digits and _ alone.")
        if set(self.maps) != set(self.vocabularies):
            raise BilexError("every language needs a map and a vocabulary.")

    def __repr__(self) -> str:
        sizes = ", ".join(f"{code} {words:,}" for code, words in self.words.items())
        return f"ManyLanguages({sizes} words)"

    @classmethod
    def of(cls, translator: Translator) -> ManyLanguages:
        """The model of a translator: two languages, and all that is needed to save it."""
        made, space = translator.provenance, translator.whole_space
        source, target = made.languages
        known = source and target and CODE.fullmatch(source) and CODE.fullmatch(target)
        pair: LanguagePair = (source, target) if known else SIDES  # type: ignore[assignment]
        model = cls(
            vocabularies=dict(zip(pair, (space.source, space.target), strict=True)),
            maps=dict(zip(pair, (translator.source_map, translator.target_map), strict=True)),
            seeds={pair: translator.seeds},
            calibrations={pair: translator.calibration},
            provenance=made,
            lowercase=translator.lowercase,
            device=space.device,
            metric=space.metric,
            unknown=translator.unknown,
        )
        model.csls_terms[pair] = space.neighbourhoods()
        return model

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool = True, device: str = "auto") -> ManyLanguages:
        """Open a saved model of many languages; the arguments are those of `Translator.load`."""
        model = load_model(folder, verify=verify, device=device)
        if not model.many:
            raise BilexError(
                f"{folder}: is not a model of several languages; make one with 'bilex join' or "
                "'bilex align-many'."
            )
        return model

    def save(self, folder: str | Path, *, progress: Progress = SILENT) -> None:
        """Write a folder that `load` opens, all of it or nothing; only an earlier model is replaced."""
        save_model(self, folder, progress)

    @property
    def languages(self) -> list[str]:
        """The codes of the languages."""
        return list(self.vocabularies)

    language_codes = languages  # for the card of a repository

    @property
    def many(self) -> bool:
        """Whether it was made as a model of many languages, and not as a `Translator` of two."""
        return isinstance(self.provenance, ManyProvenance)

    @property
    def words(self) -> dict[str, int]:
        """How many words each language has."""
        return {code: len(vocabulary) for code, vocabulary in self.vocabularies.items()}

    @property
    def language_pairs(self) -> list[LanguagePair]:
        """Every pair of languages once, in the order of `languages`."""
        return list(itertools.combinations(self.vocabularies, 2))

    def code(self, language: str) -> str:
        """The code under which a language is stored, from its code or its name."""
        for known in (code_of(language) or language, language):
            if known in self.vocabularies:
                return known
        raise BilexError(
            f"the model has no language '{language}'; it has {', '.join(self.vocabularies)}."
            f"{nearest_name(language, self.vocabularies)}"
        )

    def __getitem__(self, languages: LanguagePair) -> Translator:
        """The translator of two languages, by code or name: `many["fi", "ru"]`."""
        return self.pair(*languages)

    def pair(self, source: str, target: str) -> Translator:
        """A translator of two of the languages, with everything that a model of two languages can do.

        Raises:
            BilexError: The model does not hold one of them, or they are the same.
        """
        pair = self.code(source), self.code(target)
        if pair[0] == pair[1]:
            raise BilexError(f"'{source}' and '{target}' are one language; name two.")
        if pair not in self._translators:
            self._translators[pair] = self._translator(*pair)
        return self._translators[pair]

    def _translator(self, a: str, b: str) -> Translator:
        space = Space(self.vocabularies[a], self.vocabularies[b], self.metric, self.device)
        space.set_neighbourhoods(*self.terms((a, b)))
        seeds = _by_pair(self.seeds, (a, b), Lexicon.swapped)
        if seeds is None:
            seeds = Lexicon([], f"no seeds of {a} and {b}")
        calibration = _by_pair(self.calibrations, (a, b), Calibration.swapped) or _NO_CONFIDENCES
        parts, made = (self.maps[a], self.maps[b], calibration), self.provenance
        if isinstance(made, Provenance):
            words = without_phrases(space, made.composed)
            return Translator.of_parts(words, *parts, self.unknown, seeds, made, self.lowercase, space)
        shared = ("method", "method_summary", "settings", "fit_seconds", "bilex_version", "python_version")
        provenance = Provenance(
            **{name: getattr(made, name) for name in (*shared, "made")},
            source_file=made.files.get(a),
            target_file=made.files.get(b),
            source_dim=made.dimensions.get(a),
            target_dim=made.dimensions.get(b),
            seeds=seeds.name,
            seed_pairs=len(seeds),
            seed_pairs_covered=len(seeds.index(*space.places)),
            expectation=from_calibration(calibration),
            source_language=a,
            target_language=b,
        )
        reader = FromSubwords.of((self.subwords.get(a), self.subwords.get(b)), parts[:2])
        return Translator.of_parts(
            space, *parts, [reader] if reader else [], seeds, provenance, self.lowercase
        )

    def terms(self, pair: LanguagePair) -> Terms:
        """CSLS's mean similarities of the words of two languages; computed once, then kept."""
        found = _by_pair(self.csls_terms, pair, lambda terms: terms[::-1])
        if found is None:
            source, target = (self.vocabularies[code] for code in pair)
            found = self.csls_terms[pair] = Space(source, target, self.metric, self.device).neighbourhoods()
        return found

    @overload
    def translate(self, words: str, source: str, target: str, k: int = 5, **options: Any) -> Answer: ...

    @overload
    def translate(
        self, words: Iterable[str], source: str, target: str, k: int = 5, **options: Any
    ) -> list[Answer]: ...

    def translate(
        self, words: str | Iterable[str], source: str, target: str, k: int = 5, **options: Any
    ) -> Answer | list[Answer]:
        """The best translations of a word of `source`, or of several; see `Translator.translate`."""
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
        """A dictionary of several languages: every word of one with its best translations into the others.

        Args:
            source: The code or name of the language whose words are translated.
            targets: The languages to translate them to.
            keep_of: Makes, from the translator of two languages, a filter of words for `Translator.lexicon`.
            progress: Receives progress reports.
            options: `k`, `mutual`, `min_score`, `min_confidence`, `ranks`, `retrieval` and `model_only` of
                `Translator.lexicon`; they hold for each target language separately.
        """
        codes = [self.code(target) for target in targets]
        if not codes:
            raise BilexError("name at least one language to translate to.")
        if self.code(source) in codes:
            raise BilexError(f"the words are of the language '{self.code(source)}'; name others after --to.")
        for code in codes:
            if codes.count(code) > 1:
                raise BilexError(f"'{code}' is named twice after --to; name each language once.")
        found: dict[str, PolyglotEntry] = {}
        for code in codes:
            translator = self.pair(source, code)
            keep = keep_of(translator) if keep_of else None
            for entry in translator.lexicon(keep=keep, progress=progress, **options):
                row = found.setdefault(entry.source, PolyglotEntry(entry.source, entry.source_rank or 0, {}))
                row.translations.setdefault(code, []).append(entry)
        entries = sorted(found.values(), key=lambda entry: entry.rank)
        return Polyglot(tuple(entries), self.code(source), tuple(codes))


def _by_pair(found: Mapping[LanguagePair, T], pair: LanguagePair, swapped: Callable[[T], T]) -> T | None:
    """The entry of two languages, in their order; None if there is none."""
    if pair in found:
        return found[pair]
    return swapped(found[pair[::-1]]) if pair[::-1] in found else None


@dataclass(frozen=True)
class PolyglotEntry:
    """A word and its translations by language; languages without an answer are left out."""

    word: str
    rank: int
    translations: dict[str, list[Entry]]


@dataclass(frozen=True, repr=False)
class Polyglot:
    """Words of one language with their translations into several, most frequent word first."""

    entries: tuple[PolyglotEntry, ...]
    source: str
    targets: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[PolyglotEntry]:
        return iter(self.entries)

    def __repr__(self) -> str:
        return f"Polyglot({self.source} to {', '.join(self.targets)}, {len(self):,} words)"

    def text(self, format: str) -> str:
        """The whole dictionary as text.

        Args:
            format: "tsv" or "csv" (a header with the languages' codes, a column each, several translations
                divided by " | "), or "jsonl" (scores and confidences too).
        """
        from bilex.lexicon.formats.tables import csv_line

        check_several_languages(format)
        if format == "jsonl":
            return "".join(json.dumps(self._record(entry), ensure_ascii=False) + "\n" for entry in self)
        rows = [[self.source, *self.targets]]
        for entry in self:
            found = (entry.translations.get(language, ()) for language in self.targets)
            cells = (" | ".join(_spaced(pair.target) for pair in pairs) for pairs in found)
            rows.append([_spaced(entry.word), *cells])
        return "".join(csv_line(row) if format == "csv" else "\t".join(row) + "\n" for row in rows)

    def save(self, path: str | Path, format: str | None = None) -> None:
        """Write the dictionary, atomically, in the format named or the one that the file's name says."""
        from bilex.lexicon.formats import format_of

        text = self.text(format_of(path, format).name)
        with atomic_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="")

    def _record(self, entry: PolyglotEntry) -> dict[str, Any]:
        translations = {
            language: [
                {
                    "word": _spaced(pair.target),
                    "score": pair.score,
                    "confidence": pair.confidence,
                    "rank": pair.target_rank,
                    "known": pair.known,
                }
                for pair in pairs
            ]
            for language, pairs in entry.translations.items()
        }
        word = _spaced(entry.word)
        return {"word": word, "language": self.source, "rank": entry.rank, "translations": translations}


def check_several_languages(format: str) -> None:
    """Make sure that a format has columns for several languages."""
    if format not in _FORMATS:
        raise BilexError(
            f"format '{format}' holds two languages at a time; write several as {', '.join(_FORMATS)}, or "
            "name one language after --to."
        )


def _spaced(word: str) -> str:
    """A word as people write it: "new york" for the unit "new_york"; it has no tabs or line ends."""
    return " ".join(words_of(word)) or word.strip()


def open_pair(
    model: str | Path,
    source: str | None = None,
    target: str | None = None,
    device: str = "auto",
    direction: Direction = "forward",
    *,
    verify: bool = True,
) -> tuple[Translator, Direction]:
    """The translator of two languages, and the direction in which they go.

    `source` and `target` are codes or names; None is the model's own, and `direction` counts where neither
    was given. It is a BilexError if the model does not hold one, or holds many and it is not clear which are
    meant.
    """
    opened = load_model(model, verify=verify, device=device)
    if opened.many:
        if source is None or target is None:
            raise several_languages(model, opened.languages)
        return opened.pair(source, target), direction
    translator = opened.pair(*opened.languages)
    if source is None and target is None:
        return translator, direction
    known = translator.provenance.languages
    if None in known:
        raise BilexError(
            f"{model}: does not say which languages it holds; leave out --from and --to, and use --reverse "
            "for the other direction."
        )
    wanted = [None if name is None else code_of(name) or name for name in (source, target)]
    for found in OPPOSITE:
        if all(one in (None, code) for one, code in zip(wanted, directed(known, found), strict=True)):
            return translator, found
    named = " to ".join(name or "any" for name in (source, target))
    raise BilexError(f"{model}: translates between {known[0]} and {known[1]}, not {named}.")


def read_dictionaries(
    folder: str | Path, languages: Sequence[str], read: Callable[[Path, LanguagePair], Lexicon]
) -> dict[LanguagePair, Lexicon]:
    """The dictionaries of a folder that are of two of some languages, by their codes.

    Files are read (by `read`, the first language's words first) whose names have two codes with a hyphen
    between them, such as en-fi.tsv or yacle.train.freq.5k.en-fi.tsv. Of en-fi and fi-en there is one entry,
    all pairs in the order of the file that comes first by name. It is a BilexError if there is none.
    """
    path = Path(folder)
    if not path.is_dir():
        raise BilexError(f"{path}: is not a folder; give one with dictionaries named like en-fi.tsv.")
    found: dict[LanguagePair, Lexicon] = {}
    for file in sorted(path.iterdir()):
        named = (pair for pair in _TWO_CODES.findall(file.name) if set(pair) <= set(languages))
        pair: LanguagePair | None = next((pair for pair in named if pair[0] != pair[1]), None)
        if pair is not None and file.is_file():
            add_pairs(found, pair, read(file, pair))
    if not found:
        raise BilexError(
            f"{path}: holds no dictionary of two of {', '.join(languages)}; name the files like "
            f"{languages[0]}-{languages[1]}.tsv."
        )
    return found


def add_pairs(found: dict[LanguagePair, Lexicon], pair: LanguagePair, lexicon: Lexicon) -> LanguagePair:
    """Add a dictionary to that of its two languages, swapped if needed; returns the pair as it is listed."""
    if pair[::-1] in found:
        pair, lexicon = pair[::-1], lexicon.swapped()
    found[pair] = found[pair] + lexicon if pair in found else lexicon
    return pair

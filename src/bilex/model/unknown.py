"""Words and phrases that a vocabulary lacks: read from n-grams or by a language model, or composed.

A translator tries its readers of unknown words in order; the first that can read a word gives its vector in
the common space. To add a kind, write a class of the shape of `OutOfVocabulary` and name it in `KINDS`.

A composed phrase is the mean of its words' vectors in the space, weighted by smooth inverse frequency. It can
be a query, and an answer to phrases, but it is never a neighbour, and never an answer to a word unless the
seeds say so.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NoReturn, Protocol

import numpy as np

from bilex.aligners.maps import Map, maps_from_state, maps_state
from bilex.core.errors import BilexError
from bilex.core.files import read_json, write_json
from bilex.core.manifest import ModelFiles
from bilex.encoders.stage import Combination, mixed_views
from bilex.lexicon import Lexicon
from bilex.model.space import CSLS_NEIGHBOURS, SIDES, Floats, Side, Space
from bilex.search import mean_of_best
from bilex.vectors import Subwords, WordVectors
from bilex.vectors.phrases import composed, composing_weights, is_phrase, words_of
from bilex.vectors.stored import unit_rows

if TYPE_CHECKING:
    from typing import Self

    from bilex.encoders.model import WordEncoder
    from bilex.model.translator import Translator

COMPOSED = "composed"
Composer = Callable[[Sequence[str], Side], list[Floats | None]]
_MODEL, _COMBINATION, _SUBWORDS = "model", "combination.safetensors", "subwords"
_CONFIG, _INNER = "remapped.json", "inner"


class OutOfVocabulary(Protocol):
    """Gives vectors to words that the vocabulary does not hold."""

    kind: ClassVar[str]

    def vectors(self, words: Sequence[str], side: Side) -> list[Floats | None]:
        """The vector of each word in the common space, or None for a word it cannot read."""

    def save(self, folder: Path) -> None:
        """Write all that `load` needs into an existing, empty folder."""

    @classmethod
    def load(cls, folder: Path, maps: Mapping[Side, Map], device: str, files: ModelFiles) -> Self:
        """Open what `save` wrote; `files` compares every file with its checksum before it is read."""


class FromSubwords:
    """The n-grams of one or both languages, and the maps that take their vectors into the space."""

    kind: ClassVar[str] = "subwords"

    def __init__(self, subwords: Mapping[Side, Subwords], maps: Mapping[Side, Map]) -> None:
        self.subwords, self._maps = dict(subwords), dict(maps)

    @classmethod
    def of(cls, subwords: Sequence[Subwords | None], maps: Sequence[Map]) -> FromSubwords | None:
        """The reader of the n-grams of both languages, source first; None if neither has any."""
        found = {side: ngrams for side, ngrams in zip(SIDES, subwords, strict=True) if ngrams is not None}
        return cls(found, dict(zip(SIDES, maps, strict=True))) if found else None

    def vectors(self, words: Sequence[str], side: Side) -> list[Floats | None]:
        """The mapped mean of each word's n-grams; None without n-grams."""
        found: list[Floats | None] = [None] * len(words)
        for place, word in enumerate(words):
            with contextlib.suppress(KeyError):  # the language has no n-grams, or the word has none
                mapped = self._maps[side](self.subwords[side].vector(word)[None])[0]
                found[place] = mapped if np.isfinite(mapped).all() and mapped.any() else None
        return found

    def save(self, folder: Path) -> None:
        """Write the n-grams of each language as vectors of no words."""
        for side, subwords in self.subwords.items():
            save_subwords(subwords, folder / side)

    @classmethod
    def load(cls, folder: Path, maps: Mapping[Side, Map], device: str, files: ModelFiles) -> FromSubwords:
        """Open what `save` wrote; the n-grams stay on disk until they are used."""
        files.compare(folder)
        return cls({side: load_subwords(folder / side) for side in SIDES if (folder / side).is_dir()}, maps)


def save_subwords(subwords: Subwords, folder: Path) -> None:
    """Write n-grams as vectors of no words."""
    none = np.zeros((0, subwords.rows.shape[1]), np.float32)
    WordVectors([], none, subwords=subwords).save(folder, "safetensors")


def load_subwords(folder: Path) -> Subwords:
    """Open what `save_subwords` wrote; the caller compares checksums."""
    stored = WordVectors.load(folder, lowercase=False, verify=False).subwords
    if stored is None:
        raise BilexError(f"{folder}: holds no n-grams; copy or make the model again.")
    return stored


class FromEncoder:
    """The encoder's vector of a word, combined with its subwords' vector where there is one.

    `encoder` opens the encoder, for the first unknown word; `write` writes its model folder to a path;
    `subwords` are the static vectors of unknown words, in the combined space.
    """

    kind: ClassVar[str] = "encoder"

    def __init__(
        self,
        encoder: Callable[[], WordEncoder],
        combination: Combination,
        write: Callable[[Path], None],
        subwords: FromSubwords | None = None,
    ) -> None:
        self._open, self._combination, self._write = encoder, combination, write
        self._subwords = subwords
        self.mixing = combination.mixing

    def __getstate__(self) -> NoReturn:
        raise BilexError(
            "a translator with a language model cannot be pickled; save it with Translator.save, and open "
            "the folder with Translator.load in the other process."
        )

    @cached_property
    def _encoder(self) -> WordEncoder:
        return self._open()

    def encoded(self, words: Sequence[str]) -> Floats:
        """The encoder's part alone, in the combined space: unit rows, zeros for words it cannot read."""
        return unit_rows(self._encoder.encode(words) @ self._combination.encoder_map)

    def vectors(self, words: Sequence[str], side: Side) -> list[Floats | None]:
        """(1−λ)·subwords + λ·encoder, or the one of the two that there is; None for neither."""
        encoded = self.encoded(words)
        static = np.zeros_like(encoded)
        for place, known in enumerate(self._subwords.vectors(words, side) if self._subwords else ()):
            static[place] = 0 if known is None else known
        mixed = mixed_views(unit_rows(static), encoded, self.mixing)
        return [row if row.any() else None for row in mixed]

    def phrase_vectors(self, phrases: Sequence[str], composed: Sequence[Floats]) -> list[Floats]:
        """(1−λ)·composed + λ·encoder: the model reads each phrase whole."""
        return list(mixed_views(unit_rows(np.array(composed)), self.encoded(phrases), self.mixing))

    def save(self, folder: Path) -> None:
        """Write the encoder as a Hugging Face model folder, and the maps."""
        from safetensors.numpy import save_file

        self._write(folder / _MODEL)
        save_file(self._combination.state(), folder / _COMBINATION)
        if self._subwords is not None:
            (folder / _SUBWORDS).mkdir()
            self._subwords.save(folder / _SUBWORDS)

    @classmethod
    def load(cls, folder: Path, maps: Mapping[Side, Map], device: str, files: ModelFiles) -> FromEncoder:
        """Open what `save` wrote; the encoder is compared with its checksums and opened at its first use."""
        from safetensors.numpy import load_file

        def encoder() -> WordEncoder:
            files.compare(folder / _MODEL)
            from bilex.encoders.model import WordEncoder

            return WordEncoder.load(folder / _MODEL, device=device)

        def write(path: Path) -> None:
            files.compare(folder / _MODEL)
            shutil.copytree(folder / _MODEL, path)

        files.compare(folder, but=folder / _MODEL)
        combination = Combination.from_state(load_file(folder / _COMBINATION))
        stored = folder / _SUBWORDS
        subwords = FromSubwords.load(stored, maps, device, files) if stored.is_dir() else None
        return cls(encoder, combination, write, subwords)


class Remapped:
    """Another reader (`inner`), whose space (that `before` maps into) was mapped `onward`."""

    kind: ClassVar[str] = "remapped"

    def __init__(
        self, inner: OutOfVocabulary, before: Mapping[Side, Map], onward: Mapping[Side, Map]
    ) -> None:
        self._inner, self._before, self._onward = inner, before, onward

    def vectors(self, words: Sequence[str], side: Side) -> list[Floats | None]:
        """What the inner reader gives, mapped onward."""
        found = self._inner.vectors(words, side)
        return [None if row is None else self._onward[side](row[None])[0] for row in found]

    def save(self, folder: Path) -> None:
        """Write the inner reader and both pairs of maps."""
        from safetensors.numpy import save_file

        config: dict[str, object] = {"inner": self._inner.kind}
        for name, maps in (("before", self._before), ("onward", self._onward)):
            config[name], tensors = maps_state(maps["source"], maps["target"])
            save_file(tensors, folder / f"{name}.safetensors")
        write_json(folder / _CONFIG, config)
        (folder / _INNER).mkdir()
        self._inner.save(folder / _INNER)

    @classmethod
    def load(cls, folder: Path, maps: Mapping[Side, Map], device: str, files: ModelFiles) -> Remapped:
        """Open what `save` wrote; it has its own maps."""
        from safetensors.numpy import load_file

        files.compare(folder, but=folder / _INNER)
        config = read_json(folder / _CONFIG)

        def read(name: str) -> dict[Side, Map]:
            stored = maps_from_state(config[name], load_file(folder / f"{name}.safetensors"))
            return dict(zip(SIDES, stored, strict=True))

        before = read("before")
        inner = load_reader(config["inner"], folder / _INNER, before, device, files)
        return cls(inner, before, read("onward"))


KINDS: dict[str, type[OutOfVocabulary]] = {one.kind: one for one in (FromSubwords, FromEncoder, Remapped)}


def load_reader(
    kind: str, folder: Path, maps: Mapping[Side, Map], device: str, files: ModelFiles
) -> OutOfVocabulary:
    """Open a reader of one of the `KINDS`."""
    if kind not in KINDS:
        raise BilexError(f"{folder}: '{kind}' is not known to this version of bilex; upgrade bilex.")
    return KINDS[kind].load(folder, maps, device, files)


@dataclass(frozen=True)
class PhraseReader:
    """Gives vectors to texts that the vocabularies of a space lack; `unknown` are readers of single words."""

    space: Space
    unknown: Sequence[OutOfVocabulary] = ()

    def read(self, texts: Sequence[str], side: Side) -> dict[str, tuple[Floats, str]]:
        """The vectors of those texts that can be read, each with its origin."""
        phrases = [text for text in texts if is_phrase(text)]
        vectors = zip(phrases, self.vectors(phrases, side), strict=True)
        found = {text: (vector, COMPOSED) for text, vector in vectors if vector is not None}
        for reader in self.unknown:
            waiting = [text for text in texts if text not in found and text not in phrases]
            read = reader.vectors(waiting, side) if waiting else []
            for text, vector in zip(waiting, read, strict=True):
                if vector is not None:
                    found[text] = (vector, reader.kind)
        return found

    def vectors(self, phrases: Sequence[str], side: Side) -> list[Floats | None]:
        """The vector of each phrase in the common space; None where a word of it has none."""
        made = [(phrase, self._composed(phrase, side)) for phrase in phrases]
        found = {phrase: vector for phrase, vector in made if vector is not None}
        encoder = next((reader for reader in self.unknown if isinstance(reader, FromEncoder)), None)
        if encoder is not None and found:
            texts = [" ".join(words_of(phrase)) for phrase in found]
            found = dict(zip(found, encoder.phrase_vectors(texts, list(found.values())), strict=True))
        return [found.get(phrase) for phrase in phrases]

    def unknown_words(self, phrase: str, side: Side) -> list[str]:
        """The words of a phrase that have no vector; none for a single word."""
        words = words_of(phrase)
        return [word for word in words if self._word(word, side) is None] if len(words) > 1 else []

    def _composed(self, phrase: str, side: Side) -> Floats | None:
        """The weighted mean of a phrase's words; a word outside the vocabulary weighs fully."""
        words, rows = words_of(phrase), self.space.words(side).key_to_index
        vectors = [vector for word in words if (vector := self._word(word, side)) is not None]
        if len(vectors) < len(words) or not vectors:
            return None
        known = [rows.get(word, len(rows)) for word in words]
        return composed(np.array(vectors), composing_weights(known, len(rows)))

    def _word(self, word: str, side: Side) -> Floats | None:
        vocabulary = self.space.words(side)
        if word in vocabulary:
            return np.asarray(vocabulary.vectors[vocabulary.key_to_index[word]])
        read = (reader.vectors([word], side)[0] for reader in self.unknown)
        return next((vector for vector in read if vector is not None), None)


def with_phrases(
    space: Space, lexicon: Lexicon, compose: Composer, neighbours: int = CSLS_NEIGHBOURS
) -> tuple[Space, dict[Side, list[str]]]:
    """A space with the phrases of a word list that it lacks after the words of each side, and these phrases.

    Phrases that cannot be composed are left out; words are spelt as `Lexicon.as_units` spells them.
    """
    added: dict[Side, dict[str, Floats]] = {}
    for place, side in enumerate(SIDES):
        texts = dict.fromkeys(pair[place] for pair in lexicon.pairs)
        phrases = [text for text in texts if text not in space.words(side) and is_phrase(text)]
        vectors = zip(phrases, compose(phrases, side) if phrases else [], strict=True)
        found = {phrase: vector for phrase, vector in vectors if vector is not None}
        if found:
            added[side] = found
    if not added:
        return space, {}
    sides = {side: space.words(side) for side in SIDES}
    terms: dict[Side, Floats] = dict(zip(SIDES, space.neighbourhoods(neighbours), strict=True))
    for side, found in added.items():
        words, others = sides[side], space.words("target" if side == "source" else "source")
        rows = np.array(list(found.values()), np.float32)
        if words.preprocessing[-1:] == ("unit",):
            rows = unit_rows(rows)
        means = mean_of_best(rows, others.vectors, neighbours, device=space.device)
        joined = np.concatenate([np.asarray(words.vectors), rows])
        sides[side] = WordVectors([*words.index_to_key, *found], joined, words.preprocessing)
        terms[side] = np.concatenate([terms[side], means])
    wider = Space(sides["source"], sides["target"], space.metric, space.device)
    wider.set_neighbourhoods(terms["source"], terms["target"], neighbours)
    return wider, {side: list(found) for side, found in added.items()}


def without_phrases(space: Space, composed: Mapping[str, Sequence[str]]) -> Space:
    """The words alone of a space that `with_phrases` made; `composed` are the phrases of each side."""
    if not any(composed.values()):
        return space
    source = space.source.head(len(space.source) - len(composed.get("source", ())))
    target = space.target.head(len(space.target) - len(composed.get("target", ())))
    words = Space(source, target, space.metric, space.device)
    r_source, r_target = space.neighbourhoods()
    words.set_neighbourhoods(r_source[: len(source)], r_target[: len(target)])
    return words


def with_seed_phrases(translator: Translator) -> Translator:
    """A translator that knows the phrases of its seeds; they change no answer to a word."""
    space, added = with_phrases(translator.space, translator.seeds, translator.phrase_vectors)
    recorded: dict[str, tuple[str, ...]] = {side: tuple(phrases) for side, phrases in added.items()}
    return translator.with_parts(
        whole_space=space, provenance=replace(translator.provenance, composed=recorded)
    )

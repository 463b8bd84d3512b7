"""Words and phrases that a vocabulary lacks: read from n-grams or by a language model, or composed.

A translator tries its readers of unknown words in order; the first that can read a word gives its vector in
the common space. To add a kind, write a class of the shape of `OutOfVocabulary` and name it in `KINDS`.

A composed phrase is the mean of its words' vectors in the space, weighted by smooth inverse frequency. It can
be a query, and an answer to phrases, but it is never a neighbour, and never an answer to a word unless the
seeds say so.
"""

from __future__ import annotations

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

    def vectors(self, words: Sequence[str], side: Side) -> list[Floats | None]:
        """The mapped mean of each word's n-grams; None without n-grams."""
        return [self._vector(word, side) for word in words]

    def _vector(self, word: str, side: Side) -> Floats | None:
        try:
            vector = self.subwords[side].vector(word)
        except KeyError:  # the language has no n-grams, or the word has none
            return None
        mapped: Floats = self._maps[side](vector[None])[0]
        return mapped if np.isfinite(mapped).all() and mapped.any() else None

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
            if known is not None:
                static[place] = known
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
        found = [self._composed(phrase, side) for phrase in phrases]
        places = [place for place, vector in enumerate(found) if vector is not None]
        encoder = next((reader for reader in self.unknown if isinstance(reader, FromEncoder)), None)
        if encoder is not None and places:
            texts = [" ".join(words_of(phrases[place])) for place in places]
            mixed = encoder.phrase_vectors(texts, [vector for vector in found if vector is not None])
            for place, vector in zip(places, mixed, strict=True):
                found[place] = vector
        return found

    def unknown_words(self, phrase: str, side: Side) -> list[str]:
        """The words of a phrase that have no vector; none for a single word."""
        words = words_of(phrase)
        return [word for word in words if self._word(word, side) is None] if len(words) > 1 else []

    def _composed(self, phrase: str, side: Side) -> Floats | None:
        """The weighted mean of a phrase's words; a word outside the vocabulary weighs fully."""
        rows = getattr(self.space, side).key_to_index
        words = words_of(phrase)
        vectors = [vector for word in words if (vector := self._word(word, side)) is not None]
        if len(vectors) < len(words) or not vectors:
            return None
        known = [rows.get(word, len(rows)) for word in words]
        return composed(np.array(vectors), composing_weights(known, len(rows)))

    def _word(self, word: str, side: Side) -> Floats | None:
        vocabulary: WordVectors = getattr(self.space, side)
        if word in vocabulary:
            return np.asarray(vocabulary.vectors[vocabulary.key_to_index[word]])
        read = (reader.vectors([word], side)[0] for reader in self.unknown)
        return next((vector for vector in read if vector is not None), None)


def missing_phrases(lexicon: Lexicon, space: Space) -> dict[Side, list[str]]:
    """The phrases of a word list (see `Lexicon.as_units`) that the vocabularies lack, each once."""
    texts = {side: dict.fromkeys(pair[place] for pair in lexicon.pairs) for place, side in enumerate(SIDES)}
    return {
        side: [text for text in texts[side] if text not in getattr(space, side) and is_phrase(text)]
        for side in SIDES
    }


def with_phrases(
    space: Space, phrases: Mapping[Side, list[str]], compose: Composer, neighbours: int = CSLS_NEIGHBOURS
) -> tuple[Space, dict[Side, list[str]]]:
    """A space with phrases after the words of each side, and the phrases that could be composed and added."""
    added: dict[Side, list[str]] = {}
    sides: dict[Side, WordVectors] = {"source": space.source, "target": space.target}
    terms = dict(zip(SIDES, space.neighbourhoods(neighbours), strict=True)) if any(phrases.values()) else {}
    for side, texts in phrases.items():
        vectors = compose(texts, side) if texts else []
        found = {text: row for text, row in zip(texts, vectors, strict=True) if row is not None}
        if not found:
            continue
        words, others = sides[side], space.target if side == "source" else space.source
        rows = np.array(list(found.values()), np.float32)
        if words.preprocessing[-1:] == ("unit",):
            rows = unit_rows(rows)
        means = mean_of_best(rows, others.vectors, neighbours, device=space.device)
        joined = np.concatenate([np.asarray(words.vectors), rows])
        sides[side] = WordVectors([*words.index_to_key, *found], joined, words.preprocessing)
        terms[side] = np.concatenate([terms[side], means])
        added[side] = list(found)
    if not added:
        return space, {}
    wider = Space(sides["source"], sides["target"], space.metric, space.device)
    wider.set_neighbourhoods(terms["source"], terms["target"], neighbours)
    return wider, added


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
    words = translator.space
    space, added = with_phrases(words, missing_phrases(translator.seeds, words), translator.phrase_vectors)
    recorded: dict[str, tuple[str, ...]] = {side: tuple(phrases) for side, phrases in added.items()}
    provenance = replace(translator.provenance, composed=recorded)
    return translator.with_parts(space=words, whole_space=space, provenance=provenance)

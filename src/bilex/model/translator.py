"""What a user keeps: a space with both directions, confidences, and a memory of how it was made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from bilex.aligners.maps import Map
from bilex.core.errors import BilexError
from bilex.core.hub import OnTheHub
from bilex.core.languages import two_languages
from bilex.core.progress import SILENT, Progress, chosen_progress
from bilex.fit.calibration import Calibration
from bilex.lexicon import Lexicon
from bilex.model.answering import answers
from bilex.model.answers import Answer
from bilex.model.known import KnownPairs, Proposer, own_proposer
from bilex.model.phrases import PhraseReader, SeedPhrases, with_seed_phrases
from bilex.model.provenance import Provenance
from bilex.model.space import Direction, Floats, Retrieval, Space, map_words
from bilex.model.unknown import OutOfVocabulary, Side
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner
    from bilex.encoders.settings import StageC2
    from bilex.fit.fitted import Fitted
    from bilex.model.filters import Keep
    from bilex.model.induction import InducedLexicon


@dataclass(eq=False, repr=False)
class Translator(OnTheHub):
    """Translates words both ways between two languages.

    Args:
        space: Both vocabularies in one space.
        source_map: Takes source vectors, as they come from their file, into the space.
        target_map: Likewise for the target language.
        calibration: From scores to confidences.
        unknown: Who gives vectors to words outside the vocabulary, asked in order.
        seeds: The pairs it was learned from, and pairs that were rejected.
        provenance: From what and how it was made: languages, retrieval, settings, report, files.
        lowercase: Whether the vocabularies were lower-cased, so that questions are too.

    Examples:
        >>> translator = Translator.load("en-fi")  # doctest: +SKIP
        >>> translator.translate("dog")[0].word  # doctest: +SKIP
        'koira'
    """

    space: Space
    source_map: Map
    target_map: Map
    calibration: Calibration = field(default_factory=Calibration)
    unknown: list[OutOfVocabulary] = field(default_factory=list)
    seeds: Lexicon = field(default_factory=lambda: Lexicon([], "the seeds"))
    provenance: Provenance = field(default_factory=Provenance)
    lowercase: bool = True

    def __repr__(self) -> str:
        source, target = self.languages
        sizes = f"{len(self.space.source):,} × {len(self.space.target):,} words"
        return f"Translator({source}–{target}, {sizes}, {self.provenance.method})"

    @classmethod
    def fit(
        cls,
        aligner: Aligner,
        source: WordVectors,
        target: WordVectors,
        lexicon: Lexicon | None = None,
        *,
        stage: StageC2 | None = None,
        calibrate: bool = True,
        held_out: float = 0.1,
        lowercase: bool = True,
        languages: tuple[str | None, str | None] = (None, None),
        progress: Progress | bool | None = None,
        checkpoint: Path | None = None,
    ) -> Translator:
        """Align two languages and make a translator of them.

        The aligner learns from all seed pairs. What is left open (`preset="auto"` of c1, λ = "auto") and the
        confidences are decided before that by smaller fits without some of the seeds (docs/recipe.md).

        Args:
            aligner: The method with its settings; fitted in place, with the preset that was chosen.
            source: Source vectors.
            target: Target vectors.
            lexicon: Seed pairs; None where the method needs none.
            stage: Settings of stage C2, which adds a language model; None for none.
            calibrate: Whether to learn confidences.
            held_out: The share of the seed's source words that they are learned on.
            lowercase: Whether the vocabularies were lower-cased when they were read.
            languages: Codes of the two languages, such as ("en", "fi"); None takes what the files' names say.
            progress: Receives how far the work is. None shows bars in a terminal or a notebook and nothing
                elsewhere; True always shows it, False never.
            checkpoint: A folder where a method that can be resumed keeps its state.

        Raises:
            BilexError: The data cannot serve this method.
        """
        from bilex.fit import Recipe, fit

        fitted = fit(
            Recipe.of(aligner, stage, calibrate=calibrate, held_out=held_out),
            source,
            target,
            lexicon,
            aligner=aligner,
            encoder=stage.open_encoder if stage is not None else None,
            progress=chosen_progress(progress),
            checkpoint=checkpoint,
        )
        return cls.of(fitted, source, target, lowercase=lowercase, languages=languages)

    @classmethod
    def of(
        cls,
        fitted: Fitted,
        source: WordVectors,
        target: WordVectors,
        *,
        lowercase: bool = True,
        languages: tuple[str | None, str | None] = (None, None),
    ) -> Translator:
        """The translator of a recipe that was fitted with `bilex.fit.fit`.

        Args:
            fitted: What `fit` returned.
            source: The source vectors that it was fitted on.
            target: The target vectors.
            lowercase: Whether the vocabularies were lower-cased when they were read.
            languages: Codes of the two languages; None takes what the files' names say.
        """
        from bilex.model.fitting import translator_of

        files = [side.report.source if side.report else None for side in (source, target)]
        known = two_languages((languages[0], files[0]), (languages[1], files[1]))
        made = translator_of(fitted, source, target, lowercase=lowercase, languages=known)
        return with_seed_phrases(made, made.seeds)

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool = True, device: str = "auto") -> Translator:
        """Open a saved translator; its vectors are memory-mapped.

        Args:
            folder: What `save` wrote.
            verify: Whether every file is compared with its checksum before it is read; a language model is
                when its first word comes.
            device: Where searches run.

        Raises:
            BilexError: It is no such folder, comes from a newer version, or a file was damaged.
        """
        from bilex.model.storage import load_translator

        return load_translator(folder, verify=verify, device=device)

    def save(self, folder: str | Path) -> None:
        """Write a folder that `load` opens, all of it or nothing.

        An earlier model of that name is replaced; a folder that is not one of ours never is.

        Raises:
            BilexError: The folder cannot be written.
        """
        from bilex.model.storage import save_translator

        save_translator(self, folder)

    @property
    def language_codes(self) -> list[str]:
        """The codes of the two languages, as far as they are known."""
        return [code for code in self.provenance.languages if code]

    @property
    def languages(self) -> tuple[str, str]:
        """The names of the two languages, or "source" and "target" where they are not known."""
        return self.provenance.language_names()

    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        words: str,
        k: int = 5,
        *,
        direction: Direction = "forward",
        retrieval: Retrieval = "csls",
        model_only: bool = False,
        keep: Keep | None = None,
    ) -> Answer: ...

    @overload
    def translate(
        self,
        words: Iterable[str],
        k: int = 5,
        *,
        direction: Direction = "forward",
        retrieval: Retrieval = "csls",
        model_only: bool = False,
        keep: Keep | None = None,
    ) -> list[Answer]: ...

    def translate(
        self,
        words: str | Iterable[str],
        k: int = 5,
        *,
        direction: Direction = "forward",
        retrieval: Retrieval = "csls",
        model_only: bool = False,
        keep: Keep | None = None,
    ) -> Answer | list[Answer]:
        """The best translations of a word, or of each of several.

        Translations that the seeds give come first and are marked as known; rejected ones are left out.

        Args:
            words: One word or several. A word is looked up as it is, then lower-cased if the
                vocabularies were.
            k: How many translations a word.
            direction: "forward" from source to target, "backward" the other way.
            retrieval: "csls", or "nn" for the plain similarity.
            model_only: Only what the model itself finds, as if no word were known.
            keep: Says of a word and its side ("source" or "target") whether it may be an answer, as
                `bilex.model.filters.word_filter` does; known translations always may.

        Returns:
            An `Answer` for a single word, a list of them for several. An unknown word has an answer
            without translations that knows the closest spellings.
        """
        if isinstance(words, str):
            overrides: dict[str, Any] = {"direction": direction, "retrieval": retrieval}
            return self.translate([words], k, **overrides, model_only=model_only, keep=keep)[0]
        if k < 1:
            raise BilexError(f"{k} translations were asked for; ask for at least 1.")
        return answers(self, list(words), k, direction, retrieval, model_only=model_only, keep=keep)

    @cached_property
    def known_pairs(self) -> KnownPairs:
        """The seeds and the rejected pairs that both vocabularies hold, by row."""
        return KnownPairs.of(self.seeds, self.space)

    def proposer(self, direction: Direction, retrieval: Retrieval, *, model_only: bool = False) -> Proposer:
        """A function from rows of a vocabulary and k to answers as arrays, for many calls in one direction.

        The arguments are those of `translate`.
        """
        if model_only:
            return own_proposer(self.space, self.calibration, direction, retrieval)
        return self.known_pairs.proposer(self.space, self.calibration, direction, retrieval)

    @cached_property
    def phrase_reader(self) -> PhraseReader:
        """Gives vectors to phrases that the vocabularies lack."""
        return PhraseReader(self.space, self.unknown)

    def phrase_vectors(self, phrases: Sequence[str], side: Side) -> list[Floats | None]:
        """The vector of each phrase in the common space, composed of its words; None with an unknown word.

        Args:
            phrases: Words divided by spaces or underscores, in the case of the vocabularies.
            side: Their language.
        """
        return self.phrase_reader.vectors(phrases, side)

    @cached_property
    def seed_phrases(self) -> SeedPhrases:
        """Which words of the vocabularies are phrases of the seeds that were composed."""
        return SeedPhrases(self.provenance.composed)

    def lexicon(
        self,
        *,
        k: int = 1,
        direction: Literal["forward", "backward", "both"] = "forward",
        retrieval: Retrieval = "csls",
        mutual: bool = False,
        min_score: float | None = None,
        min_confidence: float | None = None,
        ranks: tuple[int, int | None] = (1, None),
        model_only: bool = False,
        keep: Keep | None = None,
        lemmas: bool | tuple[str, str] = False,
        progress: Progress = SILENT,
    ) -> InducedLexicon:
        """Induce a whole dictionary: every word with its best translations, known ones first.

        Args:
            k: How many translations a word.
            direction: Who asks: source words ("forward"), target words ("backward"), or "both" (pairs
                that either found, each once).
            retrieval: "csls", or "nn" for the plain similarity.
            mutual: Keep only pairs in which each word is the other's best (at most one a word, whatever k).
            min_score: Of pairs that are not known, keep only those that score at least this.
            min_confidence: Of pairs that are not known, keep only those of at least this confidence.
            ranks: The frequency range of the words to translate, first and last rank from 1; None for no end.
            model_only: Only what the model itself finds, as if no word were known.
            keep: Says of a word and its side ("source" or "target") whether it may stand in the dictionary.
            lemmas: One entry a lemma, for which its forms vote, senses numbered (docs/lemmas.md): True for
                the lemmas of the model's two languages, or codes of these, as ("en", "fi").
            progress: Receives how far the work is.

        Raises:
            BilexError: An option makes no sense, or confidences are asked for where none were calibrated.
        """
        from bilex.model.induction import Overrides, induce

        overrides = Overrides(
            k, direction, retrieval, mutual, min_score, min_confidence, ranks, model_only, keep
        )
        if lemmas:
            from bilex.model.lemma_induction import induce_by_lemma

            return induce_by_lemma(self, overrides, None if isinstance(lemmas, bool) else lemmas, progress)
        return induce(self, overrides, progress)

    @overload
    def map_vectors(self, vectors: Floats, side: Side) -> Floats: ...

    @overload
    def map_vectors(self, vectors: Any, side: Side) -> WordVectors: ...

    def map_vectors(self, vectors: Any, side: Side) -> WordVectors | Floats:
        """Take new vectors of one language, as they come from their file, into the common space.

        Args:
            vectors: Vectors from the same training run as those the maps were learned on: `WordVectors`,
                gensim's `KeyedVectors`, or a numpy array of one vector or of one a row.
            side: Their language: "source" or "target".

        Returns:
            `WordVectors`; for an array, an array of the same shape but for the dimension.

        Raises:
            BilexError: Their dimension is not the one the map was learned on.
        """
        if isinstance(vectors, np.ndarray):
            rows = np.atleast_2d(vectors).astype(np.float32)
            named = WordVectors([str(number) for number in range(len(rows))], rows)
            mapped = np.asarray(self.map_vectors(named, side).vectors)
            return mapped[0] if vectors.ndim == 1 else mapped
        if not isinstance(vectors, WordVectors):
            vectors = WordVectors.from_gensim(vectors)
        made = self.provenance
        sides = {
            "source": (self.source_map, made.source_dim),
            "target": (self.target_map, made.target_dim),
        }
        if side not in sides:
            raise BilexError(f"side '{side}' is not known; use source or target.")
        into, expected = sides[side]
        if expected is not None and vectors.dim != expected:
            raise BilexError(
                f"vectors of dimension {vectors.dim} do not fit the {side} map, which takes {expected}; "
                "use vectors of the model that the map was learned on."
            )
        return map_words(vectors, into, self.space.metric)

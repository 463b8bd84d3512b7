"""Two languages in one space: translating words both ways, fitting, saving, learning from decisions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import numpy as np

from bilex.aligners.maps import Map
from bilex.core.errors import BilexError, fitting_libraries
from bilex.core.hub import OnTheHub
from bilex.core.languages import two_languages
from bilex.core.progress import SILENT, Progress, resolve_progress
from bilex.fit import DEFAULT_METHOD
from bilex.fit.calibration import Calibration
from bilex.lexicon import Lexicon
from bilex.model.answers import Answer, Proposer, answers, by_query
from bilex.model.provenance import Provenance
from bilex.model.space import Direction, Floats, Retrieval, Side, Space, map_words
from bilex.model.unknown import FromEncoder, FromSubwords, OutOfVocabulary, PhraseReader, with_seed_phrases
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.aligners.base import Aligner
    from bilex.encoders.settings import C2
    from bilex.evaluation import Evaluation
    from bilex.model.filters import Keep
    from bilex.model.lexicon import InducedLexicon
    from bilex.model.refine import Refinement


class _Options(TypedDict, total=False):
    """The options of `Translator.translate`."""

    direction: Direction
    retrieval: Retrieval
    model_only: bool
    keep: Keep | None


class NotFittedError(BilexError, AttributeError):
    """A translator was used before it was fitted."""


class Translator(OnTheHub):
    """Translates words both ways between two languages.

    Args:
        aligner: The method with its settings, or its name; None for `C1()`. A fit leaves it as it is.
        encoder: Settings of stage C2, which adds a language model; None for none.

    Attributes:
        space: Both vocabularies in one space.
        whole_space: The same with the phrases of the seeds, composed, after the words; they are queries and
            known translations, but no other answers to words.
        source_map: Takes source vectors, as they come from their file, into the space.
        target_map: The same for the target language.
        calibration: From scores to confidences.
        unknown: Give vectors to words outside the vocabulary; the first that can read a word is used.
        seeds: The pairs it was learned from, and pairs that were rejected.
        provenance: From what and how it was made; `provenance.settings` are those of the fitted aligner.
        lowercase: Whether the vocabularies are lower-cased, so that queries are too.
        aligner_: The fitted copy of the aligner; only after `fit`.

    Examples:
        >>> translator = Translator(C1()).fit(source, target, seeds)  # doctest: +SKIP
        >>> translator.translate("dog")[0].word  # doctest: +SKIP
        'koira'
    """

    space: Space
    whole_space: Space
    source_map: Map
    target_map: Map
    calibration: Calibration
    unknown: list[OutOfVocabulary]
    seeds: Lexicon
    provenance: Provenance
    lowercase: bool
    aligner_: Aligner

    def __init__(self, aligner: Aligner | str | None = None, *, encoder: C2 | str | None = None) -> None:
        if aligner is None or isinstance(aligner, str):
            with fitting_libraries("a translator that is not loaded"):
                from bilex.aligners import get_method

                aligner = get_method(aligner or DEFAULT_METHOD)()
        if isinstance(encoder, str):
            from bilex.encoders.settings import C2

            encoder = C2(encoder)
        self.aligner: Aligner = aligner
        self.encoder: C2 | None = encoder

    @classmethod
    def of_parts(
        cls,
        space: Space,
        source_map: Map,
        target_map: Map,
        calibration: Calibration | None = None,
        unknown: Sequence[OutOfVocabulary] = (),
        seeds: Lexicon | None = None,
        provenance: Provenance | None = None,
        lowercase: bool = True,
        whole_space: Space | None = None,
    ) -> Translator:
        """A translator from its learned attributes."""
        made = cls.__new__(cls)
        made.space, made.source_map, made.target_map = space, source_map, target_map
        made.whole_space = whole_space or space
        made.calibration = calibration or Calibration()
        made.unknown = list(unknown)
        made.seeds = Lexicon([], "the seeds") if seeds is None else seeds
        made.provenance = provenance or Provenance()
        made.lowercase = lowercase
        return made

    def with_parts(self, **changes: Any) -> Translator:
        """A copy with some attributes changed; with another space, seed phrases are composed again."""
        parts = {name: getattr(self, name) for name in _LEARNED} | changes
        if "space" not in changes or "whole_space" in changes:
            return type(self).of_parts(**parts)
        made = type(self).of_parts(**parts | {"whole_space": None})
        return made if self.whole_space is self.space else with_seed_phrases(made)

    def __getattr__(self, name: str) -> Any:
        if name in _LEARNED and "space" not in vars(self):
            raise NotFittedError("this translator is not fitted yet; call its fit first.")
        if name in ("aligner", "encoder"):  # of a model that was loaded
            made = self.provenance
            vars(self).update(aligner=made.aligner(), encoder=made.encoder())
            return vars(self)[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        if "space" not in vars(self):
            encoder = "" if self.encoder is None else f", encoder={self.encoder!r}"
            return f"Translator({self.aligner!r}{encoder})"
        source, target = self.languages
        sizes = f"{len(self.space.source):,} × {len(self.space.target):,} words"
        return f"Translator({source}–{target}, {sizes}, {self.provenance.method})"

    def fit(
        self,
        source: WordVectors,
        target: WordVectors,
        seeds: Lexicon | None = None,
        *,
        calibrate: bool = True,
        held_out: float = 0.1,
        lowercase: bool | None = None,
        languages: tuple[str | None, str | None] = (None, None),
        progress: Progress | bool | None = None,
        checkpoint: str | Path | None = None,
    ) -> Translator:
        """Align two languages.

        A copy of the aligner learns from all seed pairs. A smaller fit without some of them comes first: it
        calibrates confidences and chooses λ where it is "auto".

        Args:
            source: Source vectors, most frequent words first.
            target: Target vectors.
            seeds: Seed pairs, source word first; None where the method needs none.
            calibrate: Whether to learn confidences.
            held_out: The share of the seeds' source words that they are learned on.
            lowercase: Whether queries are lower-cased; None does that where all words of the vectors are.
            languages: Codes of the two languages, such as ("en", "fi"); None takes what the files' names say.
            progress: None shows bars in a terminal or a notebook; True always does, False never.
            checkpoint: A folder where a method that can be resumed keeps its state.

        Returns:
            This translator.
        """
        with fitting_libraries("Translator.fit"):
            from bilex.fit.fitting import fit

        result = fit(
            self.aligner,
            source,
            target,
            seeds,
            encoder=self.encoder,
            calibrate=calibrate,
            held_out=held_out,
            progress=resolve_progress(progress),
            checkpoint=None if checkpoint is None else Path(checkpoint),
        )
        if lowercase is None:
            lowercase = all(word == word.lower() for side in (source, target) for word in side.index_to_key)
        report = result.report
        codes = two_languages((languages[0], report.source_file), (languages[1], report.target_file))
        provenance = Provenance(
            **vars(report),
            encoder_settings={} if self.encoder is None else self.encoder.settings(),
            source_language=codes[0],
            target_language=codes[1],
        )
        subwords = FromSubwords.of((source.subwords, target.subwords), result.maps)
        unknown: list[OutOfVocabulary] = [subwords] if subwords else []
        if (stage := result.stage) is not None:
            encoder = stage.encoder
            unknown = [FromEncoder(lambda: encoder, stage.combination, stage.save_encoder, subwords)]
        made = Translator.of_parts(
            result.space, *result.maps, result.calibration, unknown, result.seeds, provenance, lowercase
        )
        settings = {"aligner": self.aligner, "encoder": self.encoder, "aligner_": result.aligner}
        self._replace_state({**vars(with_seed_phrases(made)), **settings})
        return self

    def _replace_state(self, state: dict[str, Any]) -> None:
        """Replace all attributes, also what was computed from earlier ones."""
        vars(self).clear()
        vars(self).update(state)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        languages: tuple[str, str] | None = None,
        verify: bool = True,
        device: str = "auto",
    ) -> Translator:
        """Open a saved translator; its vectors are memory-mapped.

        Args:
            folder: What `save` wrote.
            languages: Two languages of a model of many, by code or name, such as ("fi", "ru").
            verify: Whether every file is compared with its checksum before it is read.
            device: Where searches run.
        """
        from bilex.model.many import open_pair

        source, target = languages or (None, None)
        translator, direction = open_pair(folder, source, target, device, verify=verify)
        if direction == "backward":
            one, other = translator.languages
            raise BilexError(f"{folder}: translates from {one} to {other}, not the other way round.")
        return translator

    def save(self, folder: str | Path) -> None:
        """Write a folder that `load` opens, all of it or nothing; only an earlier model is replaced."""
        from bilex.model.many import ManyLanguages

        ManyLanguages.of(self).save(folder)

    @property
    def language_codes(self) -> list[str]:
        """The codes of the two languages, as far as they are known."""
        return [code for code in self.provenance.languages if code]

    @property
    def languages(self) -> tuple[str, str]:
        """The names of the two languages, or "source" and "target" where they are not known."""
        return self.provenance.language_names()

    @overload
    def translate(self, words: str, k: int = 5, **options: Unpack[_Options]) -> Answer: ...  # type: ignore[overload-overlap]

    @overload
    def translate(self, words: Iterable[str], k: int = 5, **options: Unpack[_Options]) -> list[Answer]: ...

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
            words: One word or several; looked up as they are, then lower-cased if the vocabularies were.
            k: How many translations per word.
            direction: "forward" from source to target, "backward" the other way.
            retrieval: "csls", or "nn" for the plain similarity.
            model_only: Only what the model itself finds, as if no word were known.
            keep: Says of a word and its side ("source" or "target") whether it may be an answer
                (`bilex.model.filters.word_filter`); known translations always may.

        Returns:
            An `Answer` for a single word, a list of them for several. That of an unknown word is empty and
            knows the closest spellings.
        """
        if k < 1:
            raise BilexError(f"k is {k}; at least 1 translation is needed.")
        queries = [words] if isinstance(words, str) else list(words)
        found = answers(self, queries, k, direction, retrieval, model_only=model_only, keep=keep)
        return found[0] if isinstance(words, str) else found

    @cached_property
    def known_pairs(self) -> dict[Direction, tuple[dict[int, list[int]], dict[int, list[int]]]]:
        """The rows of known and of rejected answers of each query row, for each direction."""
        places = self.whole_space.places
        right, wrong = self.seeds.index(*places), self.seeds.rejected_index(*places)
        backward = by_query(right[:, ::-1]), by_query(wrong[:, ::-1])
        return {"forward": (by_query(right), by_query(wrong)), "backward": backward}

    def proposer(self, direction: Direction, retrieval: Retrieval, *, model_only: bool = False) -> Proposer:
        """A function from rows of a vocabulary and k to answers as arrays, for many calls."""
        return Proposer(self, direction, retrieval, model_only=model_only)

    @property
    def phrase_reader(self) -> PhraseReader:
        """Gives vectors to words and phrases that the vocabularies lack."""
        return PhraseReader(self.space, self.unknown)

    def phrase_vectors(self, phrases: Sequence[str], side: Side) -> list[Floats | None]:
        """The vector of each phrase in the common space, composed of its words; None with an unknown word."""
        return self.phrase_reader.vectors(phrases, side)

    def evaluate(
        self, test: Lexicon, *, bootstrap: int = 1000, progress: Progress | bool | None = None
    ) -> Evaluation:
        """How many words of a test dictionary are translated rightly; known pairs are not looked up.

        Args:
            test: The test dictionary; it is never learned from.
            bootstrap: Resamplings for the 95 % intervals; 0 for none.
            progress: As in `fit`.

        Returns:
            The metrics of both directions; `.csls.p_at_1` is the primary one.
        """
        from bilex.evaluation import evaluate

        return evaluate(
            self.space,
            test,
            train=self.seeds,
            bootstrap=bootstrap,
            compose=self.phrase_vectors,
            progress=resolve_progress(progress),
        )

    def refine(
        self,
        accepted: Iterable[tuple[str, str]] = (),
        rejected: Iterable[tuple[str, str]] = (),
        *,
        held_out: Collection[str] = (),
        progress: Progress | bool | None = None,
    ) -> Refinement:
        """Learn from decisions, in place; `undo_refine` takes it back.

        Accepted pairs become known translations, rejected ones are never answers. From 500 newly accepted
        words on, the aligner is fitted again with the decisions among its seeds, and the result replaces the
        model if decisions that were held out do not lose by it. Otherwise all other words stay as they are.

        Args:
            accepted: Pairs that are translations, source word first.
            rejected: Pairs that are not. A word that was merely not chosen does not belong here.
            held_out: Source words whose pairs become known, but are not learned from.
            progress: As in `fit`.

        Returns:
            What was done; its `note` says it in a sentence.

        Examples:
            >>> translator.refine([("friend", "ystävä")], [("friend", "serkku")]).note  # doctest: +SKIP
        """
        from bilex.model.refine import refined

        made, report = refined(
            self, accepted, rejected, held_out=held_out, progress=resolve_progress(progress)
        )
        before = dict(vars(self))
        kept = {name: value for name, value in before.items() if name in ("aligner", "encoder", "aligner_")}
        self._replace_state({**vars(made), **kept, "_before": before})
        return report

    def undo_refine(self) -> None:
        """Restore the model as it was before the last `refine` of this object, exactly."""
        if "_before" not in vars(self):
            raise BilexError("there is no refinement to undo; load the earlier model from its folder.")
        self._replace_state(vars(self)["_before"])

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
            k: How many translations per word.
            direction: Translate source words ("forward"), target words ("backward"), or "both" (each pair
                once).
            retrieval: "csls", or "nn" for the plain similarity.
            mutual: Keep only pairs in which each word is the other's best (at most one per word, whatever k).
            min_score: Of pairs that are not known, keep only those that score at least this.
            min_confidence: Of pairs that are not known, keep only those of at least this confidence.
            ranks: The frequency range of the words to translate, first and last rank from 1; None for no end.
            model_only: Only what the model itself finds, as if no word were known.
            keep: Says of a word and its side ("source" or "target") whether it may be in the dictionary.
            lemmas: One entry per lemma, for which its forms vote, senses numbered: True for
                the lemmas of the model's two languages, or codes of these, as ("en", "fi").
            progress: Receives progress reports.
        """
        from bilex.model.lexicon import Induction

        induction = Induction(
            translator=self,
            k=k,
            direction=direction,
            retrieval=retrieval,
            mutual=mutual,
            min_score=min_score,
            min_confidence=min_confidence,
            ranks=ranks,
            model_only=model_only,
            keep=keep,
            progress=progress,
        )
        if not lemmas:
            return induction.by_word()
        return induction.by_lemma(None if isinstance(lemmas, bool) else lemmas)

    @overload
    def map_vectors(self, vectors: Floats, side: Side) -> Floats: ...

    @overload
    def map_vectors(self, vectors: Any, side: Side) -> WordVectors: ...

    def map_vectors(self, vectors: Any, side: Side) -> WordVectors | Floats:
        """Take new vectors of one language, as they come from their file, into the common space.

        Args:
            vectors: Vectors from the same training run as those the maps were learned on: `WordVectors`,
                gensim's `KeyedVectors`, or a numpy array of one vector or of one per row.
            side: Their language: "source" or "target".

        Returns:
            `WordVectors`; for an array, an array of the same shape but for the dimension.
        """
        if isinstance(vectors, np.ndarray):
            rows = np.atleast_2d(vectors).astype(np.float32)
            named = WordVectors([str(number) for number in range(len(rows))], rows)
            mapped = np.asarray(self.map_vectors(named, side).vectors)
            return mapped[0] if vectors.ndim == 1 else mapped
        if not isinstance(vectors, WordVectors):
            vectors = WordVectors.from_gensim(vectors)
        if side not in ("source", "target"):
            raise BilexError(f"side '{side}' is not known; use source or target.")
        into, expected = getattr(self, f"{side}_map"), getattr(self.provenance, f"{side}_dim")
        if expected is not None and vectors.dim != expected:
            raise BilexError(
                f"vectors of dimension {vectors.dim} do not fit the {side} map, which takes {expected}; "
                "use vectors of the model that the map was learned on."
            )
        return map_words(vectors, into, self.space.metric)


_LEARNED = tuple(name for name in Translator.__annotations__ if name != "aligner_")

"""Models of two languages joined into one of many; nothing is learned.

A language that two models share ties their spaces: one is rotated so that the words of that language come to
lie where they are in the other. All rotations are found at once (generalised Procrustes over the models), and
the vectors of a shared language are the mean of those that the models give it. Rotations change no similarity
within a model.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bilex.aligners.advanced import Matrix, connected_order, rotate_together
from bilex.aligners.maps import Linear, Map, Unit
from bilex.core.errors import BilexError
from bilex.core.languages import LanguagePair, is_code
from bilex.fit.calibration import Calibration
from bilex.lexicon import Lexicon
from bilex.model import Translator
from bilex.model.many import ManyLanguages, add_pairs
from bilex.model.provenance import JoinReport, ManyProvenance
from bilex.model.space import SIDES, Floats, Side
from bilex.model.unknown import FromSubwords
from bilex.vectors import WordVectors
from bilex.vectors.stored import row_norms

_SUMMARY = "models of two languages, joined by rotating their spaces onto the languages that they share"
_FREQUENT = 20_000


@dataclass(frozen=True)
class _Version:
    """A language as one of the joined models has it, in the common dimension."""

    name: str
    model: Translator
    side: Side
    words: WordVectors
    vectors: Floats

    def recorded(self, what: str) -> Any:
        return getattr(self.model.provenance, f"{self.side}_{what}")

    def map(self, rotation: Matrix) -> Map:
        """The model's own map, then its rotation; that of a shared language is near to the mean."""
        own: Map = getattr(self.model, f"{self.side}_map")
        return Map([*own.steps, Unit(), Linear(rotation[: self.model.space.dim]), Unit()])


def join(models: Mapping[str, Translator]) -> ManyLanguages:
    """Join models of two languages, by name, into one space.

    Raises:
        BilexError: A model does not know its languages or is not compared by cosines, models differ in
            lower-casing, or no language connects them.
    """
    if not models:
        raise BilexError("no model was given to join.")
    languages = {name: _languages(name, model) for name, model in models.items()}
    _check_joinable(models, languages)
    versions = _versions(models, languages)
    rotations = _rotations(list(models), versions)
    joined = {code: _consensus(found, rotations) for code, found in versions.items()}
    first = {code: found[0] for code, found in versions.items()}
    seeds: dict[LanguagePair, Lexicon] = {}
    calibrations: dict[LanguagePair, Calibration] = {}
    for name, model in models.items():
        calibrations.setdefault(add_pairs(seeds, languages[name], model.seeds), model.calibration)
    any_model = next(iter(models.values()))
    return ManyLanguages(
        vocabularies={code: words for code, (words, _) in joined.items()},
        maps={code: v.map(rotations[v.name]) for code, v in first.items()},
        seeds=seeds,
        calibrations=calibrations,
        subwords={
            code: reader.subwords[v.side]
            for code, v in first.items()
            for reader in v.model.unknown
            if isinstance(reader, FromSubwords) and v.side in reader.subwords
        },
        lowercase=any_model.lowercase,
        device=any_model.space.device,
        provenance=ManyProvenance(
            method="join",
            method_summary=_SUMMARY,
            report=JoinReport(
                models=tuple(models),
                agreement={code: round(agree, 4) for code, (_, agree) in joined.items()},
            ),
            files={code: v.recorded("file") for code, v in first.items()},
            dimensions={code: v.recorded("dim") or v.words.dim for code, v in first.items()},
        ),
    )


def _languages(name: str, model: Translator) -> LanguagePair:
    """The codes of a model's languages: those it records, else those of its name, such as "en-fi"."""
    source, target = model.provenance.languages
    if source and target:
        return source, target
    codes = name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].split("-")
    if len(codes) == 2 and all(map(is_code, codes)) and codes[0] != codes[1]:
        return codes[0], codes[1]
    raise BilexError(
        f"{name}: the model does not say which languages it holds; rename its folder to codes, such as "
        "en-fi, or align again with --source-language and --target-language."
    )


def _check_joinable(models: Mapping[str, Translator], languages: Mapping[str, LanguagePair]) -> None:
    kept = [name for name, model in models.items() if not model.lowercase]
    if 0 < len(kept) < len(models):
        raise BilexError(
            f"{kept[0]}: keeps capitals and the others do not; align all with or all without --keep-case."
        )
    for name, model in models.items():
        if model.space.metric != "cosine":
            raise BilexError(
                f"{name}: is not compared by cosines, so that it cannot be joined; use another method."
            )
    names = list(models)
    tied = [(a, b) for a, b in itertools.combinations(names, 2) if set(languages[a]) & set(languages[b])]
    reached = connected_order(names, tied)
    apart = [name for name in names if name not in reached]
    if apart:
        others = sorted({code for name in reached for code in languages[name]})
        raise BilexError(
            f"{apart[0]}: shares no language with the other models, directly or through others; add a model "
            f"of {languages[apart[0]][0]} and one of {', '.join(others)}."
        )


def _versions(
    models: Mapping[str, Translator], languages: Mapping[str, LanguagePair]
) -> dict[str, list[_Version]]:
    """Each language as the models have it, the one with most words first."""
    dimension = max(model.space.dim for model in models.values())
    versions: dict[str, list[_Version]] = {}
    for name, model in models.items():
        for side, code in zip(SIDES, languages[name], strict=True):
            words = model.space.words(side)
            wide = np.pad(np.asarray(words.vectors, np.float32), ((0, 0), (0, dimension - words.dim)))
            versions.setdefault(code, []).append(_Version(name, model, side, words, wide))
    return {code: sorted(found, key=lambda v: -len(v.words)) for code, found in versions.items()}


def _rotations(names: Sequence[str], versions: Mapping[str, list[_Version]]) -> dict[str, Matrix]:
    """A rotation for each model's space, from the words that models share."""
    agreement: dict[LanguagePair, Matrix] = {}  # by two names of models
    for found in versions.values():
        for one, other in itertools.combinations(found, 2):
            if one.name == other.name:
                continue
            shared = [word for word in one.words.index_to_key if word in other.words][:_FREQUENT]
            x, y = (v.vectors[v.words.rows(shared)].astype(np.float64) for v in (one, other))
            names_of_both, matrix = (one.name, other.name), x.T @ y
            if names_of_both[::-1] in agreement:
                names_of_both, matrix = names_of_both[::-1], matrix.T
            agreement[names_of_both] = agreement.get(names_of_both, 0) + matrix
    if not agreement:
        return {name: np.eye(next(iter(versions.values()))[0].vectors.shape[1]) for name in names}
    return rotate_together(names, agreement)


def _consensus(found: list[_Version], rotations: Mapping[str, Matrix]) -> tuple[WordVectors, float]:
    """The mean of a language's versions for the words of the largest, and how well they agree with it."""
    words = found[0].words
    turned = [version.vectors @ rotations[version.name].astype(np.float32) for version in found]
    total = turned[0].copy()
    places = []
    for vectors, version in zip(turned[1:], found[1:], strict=True):
        rows = np.array([version.words.key_to_index.get(word, -1) for word in words.index_to_key])
        place = np.flatnonzero(rows >= 0)
        places.append((place, vectors[rows[place]]))
        total[place] += places[-1][1]
    total /= row_norms(total)[:, None]
    agreement = [
        float(np.einsum("ij,ij->i", total[place], vectors).mean()) for place, vectors in places if len(place)
    ]
    return WordVectors(words.index_to_key, total, ("unit",)), min(agreement, default=1.0)

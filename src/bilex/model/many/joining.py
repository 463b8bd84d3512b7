"""Models of two languages joined into one of many, without learning anew.

Each model has a space of its own. A language that two models share ties them: one space is rotated so that
the words of that language come to lie where they are in the other. All rotations are found at once
(generalised Procrustes over the models), and the vectors of a shared language are the mean of those that the
models give it. Rotations change no similarity within a model.
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
from bilex.core.languages import is_code
from bilex.lexicon import Lexicon
from bilex.model import Calibration, Translator
from bilex.model.many.core import ManyLanguages
from bilex.model.provenance import JoinReport, ManyProvenance
from bilex.model.space import Floats, Side
from bilex.model.storage import Two
from bilex.model.unknown import FromSubwords
from bilex.vectors import Subwords, WordVectors
from bilex.vectors.core import row_norms

SUMMARY = "models of two languages, joined by rotating their spaces onto the languages that they share"
_MOST_FREQUENT = 20_000
_SIDES: tuple[Side, Side] = ("source", "target")


@dataclass(frozen=True)
class _Version:
    """A language as one of the models has it, in the common dimension."""

    model: str
    side: Side
    words: WordVectors
    vectors: Floats


def join(models: Mapping[str, Translator]) -> ManyLanguages:
    """Join models of two languages, by name, into one space.

    Raises:
        BilexError: A model does not know its languages or is not compared by cosines, models differ in
            lower-casing, or no language connects them.
    """
    if not models:
        raise BilexError("no model was given to join.")
    languages = {name: languages_of_model(name, model) for name, model in models.items()}
    _check_alike(models)
    versions = _versions(models, languages)
    _check_tied(languages)
    rotations = _rotations(list(models), versions)
    joined = {code: _consensus(found, rotations) for code, found in versions.items()}
    first = {code: found[0] for code, found in versions.items()}
    seeds, calibrations = _of_pairs(models, languages)
    return ManyLanguages(
        {code: words for code, (words, _) in joined.items()},
        {code: _map(models[v.model], v.side, rotations[v.model]) for code, v in first.items()},
        seeds,
        calibrations,
        _subwords(models, first),
        ManyProvenance(
            method="join",
            method_summary=SUMMARY,
            report=JoinReport(
                models=tuple(models),
                agreement={code: round(agree, 4) for code, (_, agree) in joined.items()},
            ),
            files={code: _original(models, version)[0] for code, version in first.items()},
            dimensions={code: _original(models, version)[1] for code, version in first.items()},
        ),
        next(iter(models.values())).lowercase,
        next(iter(models.values())).space.device,
    )


def languages_of_model(name: str, model: Translator) -> Two:
    """The codes of a model's languages: those it remembers, else those of its name, such as "en-fi"."""
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


def _original(models: Mapping[str, Translator], version: _Version) -> tuple[str | None, int]:
    """The file that a language's vectors came from, if from one, and their dimension."""
    made = models[version.model].provenance
    file, dimension = getattr(made, f"{version.side}_file"), getattr(made, f"{version.side}_dim")
    return file, version.words.dim if dimension is None else dimension


def _check_alike(models: Mapping[str, Translator]) -> None:
    lowercase = {name: model.lowercase for name, model in models.items()}
    if len(set(lowercase.values())) > 1:
        kept = next(name for name, lower in lowercase.items() if not lower)
        raise BilexError(
            f"{kept}: keeps capitals and the others do not; align all with or all without --keep-case."
        )
    for name, model in models.items():
        if model.space.metric != "cosine":
            raise BilexError(
                f"{name}: is not compared by cosines, so that it cannot be joined; use another method."
            )


def _check_tied(languages: Mapping[str, Two]) -> None:
    names = list(languages)
    tied = [
        two for two in itertools.combinations(names, 2) if set(languages[two[0]]) & set(languages[two[1]])
    ]
    reached = connected_order(names, tied)
    apart = [name for name in names if name not in reached]
    if apart:
        others = sorted({code for name in reached for code in languages[name]})
        raise BilexError(
            f"{apart[0]}: shares no language with the other models, directly or through others; add a model "
            f"of {languages[apart[0]][0]} and one of {', '.join(others)}."
        )


def _versions(models: Mapping[str, Translator], languages: Mapping[str, Two]) -> dict[str, list[_Version]]:
    """Each language as the models have it, the one with most words first."""
    dimension = max(model.space.dim for model in models.values())
    versions: dict[str, list[_Version]] = {}
    for name, model in models.items():
        for side, code in zip(_SIDES, languages[name], strict=True):
            words: WordVectors = getattr(model.space, side)
            wide = np.zeros((len(words), dimension), np.float32)
            wide[:, : words.dim] = np.asarray(words.vectors)
            versions.setdefault(code, []).append(_Version(name, side, words, wide))
    return {code: sorted(found, key=lambda v: -len(v.words)) for code, found in versions.items()}


def _rotations(names: Sequence[str], versions: Mapping[str, list[_Version]]) -> dict[str, Matrix]:
    """A rotation for each model's space, from the words that models share."""
    agreement: dict[Two, Matrix] = {}
    for found in versions.values():
        for one, other in itertools.combinations(found, 2):
            if one.model == other.model:
                continue
            shared = [w for w in one.words.index_to_key if w in other.words][:_MOST_FREQUENT]
            x, y = (v.vectors[v.words.rows(shared)].astype(np.float64) for v in (one, other))
            two, matrix = (one.model, other.model), x.T @ y
            if two[::-1] in agreement:
                two, matrix = two[::-1], matrix.T
            agreement[two] = agreement.get(two, 0) + matrix
    if not agreement:
        dimension = next(iter(versions.values()))[0].vectors.shape[1]
        return {name: np.eye(dimension) for name in names}
    return rotate_together(names, agreement)


def _consensus(found: list[_Version], rotations: Mapping[str, Matrix]) -> tuple[WordVectors, float]:
    """The mean of a language's versions for the words of the largest, and how well they agree with it."""
    largest = found[0]
    turned = [(v.vectors @ rotations[v.model].astype(np.float32), v) for v in found]
    total = turned[0][0].copy()
    places = []
    for vectors, version in turned[1:]:
        pairs = [
            (row, version.words.key_to_index[word])
            for row, word in enumerate(largest.words.index_to_key)
            if word in version.words
        ]
        place = np.array(pairs, np.int64).reshape(-1, 2)
        total[place[:, 0]] += vectors[place[:, 1]]
        places.append((vectors, place))
    total /= row_norms(total)[:, None]
    agreement = [
        float(np.einsum("ij,ij->i", total[place[:, 0]], vectors[place[:, 1]]).mean())
        for vectors, place in places
        if len(place)
    ]
    return WordVectors(largest.words.index_to_key, total, ("unit",)), min(agreement, default=1.0)


def _map(model: Translator, side: Side, rotation: Matrix) -> Map:
    """A model's own map, then its rotation. For a shared language it is one model's, near to the mean."""
    own: Map = getattr(model, f"{side}_map")
    return Map([*own.steps, Unit(), Linear(rotation[: model.space.dim]), Unit()])


def _of_pairs(
    models: Mapping[str, Translator], languages: Mapping[str, Two]
) -> tuple[dict[Two, Lexicon], dict[Two, Calibration]]:
    """The seeds and confidences of the models; of two models of one pair the confidences of the first."""
    seeds: dict[Two, Lexicon] = {}
    calibrations: dict[Two, Calibration] = {}
    for name, model in models.items():
        two, own = languages[name], model.seeds
        if two[::-1] in seeds:
            two, own = two[::-1], own.swapped()
        seeds[two] = seeds[two] + own if two in seeds else own
        calibrations.setdefault(two, model.calibration)
    return seeds, calibrations


def _subwords(models: Mapping[str, Translator], first: Mapping[str, _Version]) -> dict[str, Subwords]:
    """The n-grams of each language, where its largest version has them."""
    found: dict[str, Any] = {}
    for code, version in first.items():
        for reader in models[version.model].unknown:
            if isinstance(reader, FromSubwords) and version.side in reader.subwords:
                found[code] = reader.subwords[version.side]
    return found

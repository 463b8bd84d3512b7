"""A model of many languages as a folder, with the guarantees of a model of two.

config.json          format, languages, maps, confidences, and how it was made
README.md            a card for people; the one file that they may edit
SHA256SUMS           a checksum of every other file
languages/en/        the words of a language and their vectors in the common space
subwords/en/         fastText's n-grams of a language, where there are any
maps.safetensors     the maps, and CSLS's terms of every two languages
seeds/en-fi.json     the word pairs that were learned from
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from bilex.aligners.maps import Map
from bilex.core.files import atomic_folder, restore
from bilex.core.progress import SILENT, Progress
from bilex.core.typed_json import as_json, from_json
from bilex.model.many.card import card
from bilex.model.many.core import ManyLanguages
from bilex.model.many.provenance import ManyProvenance
from bilex.model.many.saved import (
    FORMAT_VERSION,
    LANGUAGES,
    SEEDS,
    SUBWORDS,
    model_files,
    named,
    read_all_seeds,
    read_calibrations,
    read_config,
)
from bilex.model.model_folder import (
    MANY_FORMAT,
    MAPS,
    check_free,
    finish,
    fitting_together,
    write_seeds,
    written_files,
)
from bilex.vectors import WordVectors


def check_destination(folder: str | Path) -> None:
    """Make sure, before the work, that a model of many languages may be saved in a folder.

    Raises:
        BilexError: It may not; see `check_free`.
    """
    check_free(folder, own_files)


def own_files(path: Path) -> Collection[str]:
    """The files in a folder that `save_many` wrote; none if it is no such model."""
    return written_files(path, MANY_FORMAT)


def save_many(many: ManyLanguages, folder: str | Path, progress: Progress = SILENT) -> None:
    """Write a model of many languages; the arguments are those of `ManyLanguages.save`."""
    check_destination(folder)
    steps: dict[str, list[str]] = {}
    tensors: dict[str, Any] = {}
    for language, into in many.maps.items():
        steps[language], parts = into.state(f"map.{language}")
        tensors.update(parts)
    with progress.task("Measuring neighbourhoods", len(many.language_pairs)) as task:
        for two in many.language_pairs:
            for side, terms in zip(("source", "target"), many.terms(two), strict=True):
                tensors[f"terms.{named(two)}.{side}"] = np.ascontiguousarray(terms)
            task.advance()
    config = {
        "format": MANY_FORMAT,
        "format_version": FORMAT_VERSION,
        "languages": many.languages,
        "lowercase": many.lowercase,
        "maps": steps,
        "calibrations": {named(two): found.as_dict() for two, found in many.calibrations.items()},
        **as_json(many.provenance),
    }
    with atomic_folder(folder, own_files=own_files) as path:
        for language, words in many.vocabularies.items():
            words.save(path / LANGUAGES / language, "safetensors")
        for language, ngrams in many.subwords.items():
            none = np.zeros((0, ngrams.rows.shape[1]), np.float32)
            WordVectors([], none, subwords=ngrams).save(path / SUBWORDS / language, "safetensors")
        save_file(tensors, path / MAPS)
        (path / SEEDS).mkdir()
        for two, seeds in many.seeds.items():
            write_seeds(path / SEEDS / f"{named(two)}.json", seeds)
        finish(path, config, card(many))


def load_many(folder: str | Path, *, verify: bool, device: str) -> ManyLanguages:
    """Open a model of many languages; the arguments are those of `ManyLanguages.load`."""
    path = Path(folder)
    restore(path)
    config = read_config(path)
    if verify:
        model_files(path).compare(path)
    with fitting_together(path):
        tensors = load_file(path / MAPS)
        languages = [str(language) for language in config["languages"]]
        many = ManyLanguages(
            {code: WordVectors.load(path / LANGUAGES / code, verify=False) for code in languages},
            {
                code: Map.from_state(f"map.{code}", config["maps"][code], tensors.__getitem__)
                for code in languages
            },
            read_all_seeds(path),
            read_calibrations(config),
            _read_subwords(path / SUBWORDS, languages),
            from_json(ManyProvenance, config),
            bool(config["lowercase"]),
            device,
        )
        for two in many.language_pairs:
            r_source, r_target = (tensors[f"terms.{named(two)}.{side}"] for side in ("source", "target"))
            many.keep_terms(two, (r_source, r_target))
    return many


def _read_subwords(path: Path, languages: list[str]) -> dict[str, Any]:
    found = {code: WordVectors.load(path / code).subwords for code in languages if (path / code).is_dir()}
    return {code: ngrams for code, ngrams in found.items() if ngrams is not None}

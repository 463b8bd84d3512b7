"""A model as a folder: safetensors, JSON, word lists and a card, checked by checksums.

Models of two languages and of many have one format:

config.json          format, languages, maps, confidences, and how it was made
README.md            a card for people; the one file that they may edit
SHA256SUMS           a checksum of every other file
languages/en/        the words of a language and their vectors in the common space
maps.safetensors     the maps, and CSLS's terms of every pair of languages
seeds/en-fi.json     the word pairs that were learned from
unknown/KIND/        what reads unknown words, in a model of two languages
subwords/en/         fastText's n-grams of a language, in a model of many

Folders of the first version, which had one layout for two languages and one for many, are still read.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bilex.aligners.maps import Map
from bilex.core.errors import BilexError
from bilex.core.files import (
    atomic_folder,
    check_replaceable,
    check_writable,
    json_text,
    link_or_copy,
    read_json,
    restore,
    sha256,
)
from bilex.core.languages import LanguagePair
from bilex.core.manifest import CARD, CHECKSUMS, ModelFiles, checksums, write_checksums
from bilex.core.progress import SILENT, Progress
from bilex.core.typed_json import from_json
from bilex.fit.calibration import Calibration
from bilex.lexicon import Lexicon
from bilex.model.provenance import ManyProvenance, Provenance
from bilex.model.space import CSLS_NEIGHBOURS, SIDES
from bilex.model.unknown import load_reader, load_subwords, save_subwords
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.model.many import ManyLanguages

FORMAT, FORMAT_VERSION = "bilex-translator", 2
_FIRST_MANY = "bilex-many"  # the format that many languages had in the first version
CONFIG, MAPS = "config.json", "maps.safetensors"
_LANGUAGES, _SEEDS, _UNKNOWN, _SUBWORDS = "languages", "seeds", "unknown", "subwords"
_FIRST_SEEDS = "seeds.json"
_PARTS = (CONFIG, MAPS, _LANGUAGES, _SEEDS, _UNKNOWN, _SUBWORDS, _FIRST_SEEDS, *SIDES)


def save_model(model: ManyLanguages, folder: str | Path, progress: Progress = SILENT) -> None:
    """Write a model's folder, all of it or nothing; CSLS's terms that it lacks are computed first."""
    from safetensors.numpy import save_file

    from bilex.model.provenance import card_of

    check_destination(folder)
    tensors: dict[str, Any] = {}
    steps = {}
    for language, into in model.maps.items():
        steps[language], state = into.state(f"map.{language}")
        tensors |= state
    with progress.task("Measuring neighbourhoods", len(model.language_pairs)) as task:
        for pair in model.language_pairs:
            for side, means in zip(SIDES, model.terms(pair), strict=True):
                tensors[f"terms.{'-'.join(pair)}.{side}"] = np.ascontiguousarray(means)
            task.advance()
    card = card_of(model).encode("utf-8")
    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "languages": model.languages,
        "words": model.words,
        "metric": model.metric,
        "dim": model.vocabularies[model.languages[0]].dim,
        "lowercase": model.lowercase,
        "csls_neighbours": CSLS_NEIGHBOURS,
        "maps": steps,
        "calibrations": {"-".join(pair): found.as_dict() for pair, found in model.calibrations.items()},
    }
    if not model.many:
        config["unknown"] = [reader.kind for reader in model.unknown]
    config |= {**model.provenance.as_dict(), "card_sha256": hashlib.sha256(card).hexdigest()}
    with atomic_folder(folder, own_files=own_files) as path:
        for language, words in model.vocabularies.items():
            words.save(path / _LANGUAGES / language, "safetensors")
        save_file(tensors, path / MAPS)
        (path / _SEEDS).mkdir()
        for pair, seeds in model.seeds.items():
            pairs = {"name": seeds.name, "pairs": list(seeds.pairs), "rejected": list(seeds.rejected)}
            (path / _SEEDS / f"{'-'.join(pair)}.json").write_text(json_text(pairs), encoding="utf-8")
        for reader in model.unknown:
            (path / _UNKNOWN / reader.kind).mkdir(parents=True)
            reader.save(path / _UNKNOWN / reader.kind)
        for language, ngrams in model.subwords.items():
            save_subwords(ngrams, path / _SUBWORDS / language)
        (path / CONFIG).write_text(json_text(config), encoding="utf-8")
        (path / CARD).write_bytes(card)
        write_checksums(path)


def load_model(folder: str | Path, *, verify: bool = True, device: str = "auto") -> ManyLanguages:
    """Open a model of two languages or of many; its vectors are memory-mapped."""
    from safetensors.numpy import load_file

    from bilex.model.many import ManyLanguages

    stored = StoredModel.open(folder)
    path, config = stored.path, stored.config
    files = ModelFiles.listed(path, _PARTS) if verify else ModelFiles(path)
    files.compare(path, but=path / _UNKNOWN)
    with consistent(path):
        tensors = load_file(path / MAPS)
        languages, map_name = path / _LANGUAGES, "map.{}"
        kept = sorted({name.split(".")[1] for name in tensors if name.startswith("terms.")})
        terms = {_pair(pair): [tensors[f"terms.{pair}.{side}"] for side in SIDES] for pair in kept}
        if stored.first:
            languages, map_name = path, "{}_map"
            terms = {SIDES: [tensors[f"r_{side}"] for side in SIDES]}
        maps = {
            code: Map.from_state(map_name.format(code), config["maps"][code], tensors.__getitem__)
            for code in stored.words
        }
        sides = dict(zip(SIDES, maps.values(), strict=False))
        subwords = {code: path / _SUBWORDS / code for code in maps}
        readers = {kind: path / _UNKNOWN / kind for kind in config.get("unknown", ())}
        model = ManyLanguages(
            vocabularies={
                code: WordVectors.load(languages / code, lowercase=False, verify=False) for code in maps
            },
            maps=maps,
            seeds=stored.seeds,
            calibrations=stored.calibrations,
            subwords={code: load_subwords(place) for code, place in subwords.items() if place.is_dir()},
            provenance=stored.provenance,
            lowercase=bool(config["lowercase"]),
            device=device,
            metric=config.get("metric", "cosine"),
            unknown=[load_reader(kind, place, sides, device, files) for kind, place in readers.items()],
        )
        model.csls_terms |= {pair: (source, target) for pair, (source, target) in terms.items()}
        if not stored.many:
            model.pair(*model.languages)  # whether its parts fit together is found out here
        return model


def replace_calibration(folder: str | Path, calibration: Calibration, more: dict[str, Any]) -> None:
    """Give a saved model of two languages other confidences; it is always the old model or the new one.

    Its large files are linked where the disk can do that, else copied. `more` are other entries of its
    configuration that change.
    """
    stored = StoredModel.open(folder, many=False)
    path = stored.path
    config = {**read_json(path / CONFIG), **more}
    if stored.first:
        config["calibration"] = calibration.as_dict()
    else:
        config["calibrations"] = {"-".join(stored.words): calibration.as_dict()}
    files = ModelFiles.listed(path, _PARTS)
    files.compare(path)
    unchanged = {name: digest for name, digest in files.expected.items() if name != CONFIG}
    with atomic_folder(path, own_files=lambda found: {*own_files(found), CARD}) as made:
        for file in sorted(file for file in path.rglob("*") if file.is_file()):
            name = file.relative_to(path)
            if name.as_posix() not in (CONFIG, CHECKSUMS):
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                link_or_copy(file, made / name)
        (made / CONFIG).write_text(json_text(config), encoding="utf-8")
        write_checksums(made, unchanged)


@dataclass(frozen=True)
class StoredModel:
    """What a model's folder says about the model, which is not opened.

    The configuration has today's shape; `first` means the first version's layout of two languages.
    """

    path: Path
    config: dict[str, Any]
    many: bool
    first: bool = False

    @classmethod
    def open(cls, folder: str | Path, *, many: bool | None = None) -> StoredModel:
        """Check format and version of a folder; with `many=False` a model of many languages is an error."""
        path = Path(folder)
        restore(path)
        if not path.exists():
            raise BilexError(f"{path}: there is no such model; make one with 'bilex align ... -o {path}'.")
        there = (path / CONFIG).is_file()
        config: Any = read_json(path / CONFIG) if there else None
        kind = _kind_of(config)
        if kind is None:
            why = f"its {CONFIG} does not say {FORMAT}" if there else f"no {CONFIG} in it"
            raise BilexError(f"{path}: is not a bilex model ({why}); make one with 'bilex align'.")
        version = config.get("format_version")
        if not isinstance(version, int) or version > FORMAT_VERSION:
            raise BilexError(
                f"{path}: has model format version {version}, and this bilex reads up to {FORMAT_VERSION}; "
                "install a newer bilex."
            )
        if many is False and kind == "many":
            raise several_languages(path, config.get("languages") or ())
        first = version == 1 and kind == "two"
        with consistent(path):
            if first:  # in the present shape
                config |= {
                    "languages": list(SIDES),
                    "words": {side: config[f"{side}_words"] for side in SIDES},
                    "maps": {side: config[f"{side}_map"] for side in SIDES},
                    "calibrations": {"-".join(SIDES): config["calibration"]},
                }
            elif "words" not in config:  # the first version's models of many languages
                from bilex.vectors.folder import word_count

                names = map(str, config["languages"])
                config["words"] = {name: word_count(path / _LANGUAGES / name) for name in names}
        return cls(path, config, kind == "many", first)

    @cached_property
    def words(self) -> dict[str, int]:
        """How many words each language has, by the name of its folder."""
        with consistent(self.path):
            return {str(name): int(self.config["words"][name]) for name in self.config["languages"]}

    @cached_property
    def provenance(self) -> Provenance | ManyProvenance:
        """From what and how the model was made."""
        with consistent(self.path):
            return from_json(ManyProvenance, self.config) if self.many else Provenance.from_dict(self.config)

    @cached_property
    def seeds(self) -> dict[LanguagePair, Lexicon]:
        """The word pairs that the model was learned from, by pair of languages."""
        files = {_pair(file.stem): file for file in sorted((self.path / _SEEDS).glob("*.json"))}
        if self.first:
            files = {SIDES: self.path / _FIRST_SEEDS}
        with consistent(self.path):
            return {pair: _read_seeds(file) for pair, file in files.items()}

    @cached_property
    def calibrations(self) -> dict[LanguagePair, Calibration]:
        """The confidences, by pair of languages."""
        with consistent(self.path):
            stored = self.config["calibrations"].items()
            return {_pair(name): Calibration.from_dict(found) for name, found in stored}

    def check(self, *, verify: bool) -> StoredModel:
        """Compare what is read here with its checksums, or with `verify` all files, which reads the model.

        Without it, the other files must be there and listed, and tensors as long as their headers say.
        """
        files = ModelFiles.listed(self.path, _PARTS)
        if verify:
            files.compare(self.path)
        else:
            files.compare(*(self.path / name for name in (CONFIG, _SEEDS, _FIRST_SEEDS)))
            for name in files.expected:
                _check_length(self.path / name)
        return self


def read_provenance(folder: str | Path) -> Provenance:
    """From what and how a saved model of two languages was made."""
    made = StoredModel.open(folder, many=False).provenance
    assert isinstance(made, Provenance)
    return made


def several_languages(path: str | Path, languages: Iterable[object]) -> BilexError:
    """What to raise where a model of two languages is needed."""
    listed = ", ".join(map(str, languages))
    return BilexError(
        f"{path}: holds {listed}; name two of them with --from and --to (in Python: languages=...)."
    )


def is_model(folder: str | Path) -> bool:
    """Whether a folder holds a saved model of two languages, of whatever version."""
    return _kind_of(_config_or_none(folder)) == "two"


def holds_model(folder: str | Path) -> bool:
    """Whether a folder holds a saved model of any kind and version."""
    return _kind_of(_config_or_none(folder)) is not None


def _config_or_none(folder: str | Path) -> Any:
    try:
        return read_json(Path(folder) / CONFIG)
    except BilexError:
        return None


def _kind_of(config: Any) -> Literal["two", "many"] | None:
    """Whether a configuration is that of a model of two languages or of many; None if it is another file."""
    if not isinstance(config, dict) or config.get("format") not in (FORMAT, _FIRST_MANY):
        return None
    many = config["format"] == _FIRST_MANY or ("maps" in config and "unknown" not in config)
    return "many" if many else "two"


def own_files(path: Path) -> Collection[str]:
    """The files that saving a model wrote into a folder; none if it is no model. An edited card is none."""
    config = _config_or_none(path)
    if _kind_of(config) is None:
        return ()
    card = path / CARD
    own_card = card.is_file() and sha256(card) == config.get("card_sha256")
    return {CHECKSUMS, *checksums(path), *([CARD] if own_card else [])}


def check_destination(folder: str | Path) -> None:
    """Make sure, before hours of work, that a model may be saved in a folder."""
    check_replaceable(Path(folder), own_files)
    check_writable(folder)


@contextlib.contextmanager
def consistent(path: Path) -> Iterator[None]:
    """Report in one sentence that the parts of a model do not fit together."""
    from safetensors import SafetensorError

    damage = AttributeError, LookupError, TypeError, ValueError, OverflowError, OSError, SafetensorError
    try:
        yield
    except damage as why:
        raise BilexError(f"{path}: the model's files do not fit together ({why}); make it again.") from why


def _check_length(file: Path) -> None:
    """Make sure that a file of tensors is as long as its header says; nothing else of it is read."""
    from safetensors import SafetensorError, safe_open

    if file.suffix != ".safetensors":
        return
    try:
        with safe_open(file, framework="numpy"):
            pass
    except (SafetensorError, OSError, ValueError) as error:
        raise BilexError(f"{file}: is cut off or damaged ({error}); copy or make the model again.") from error


def _read_seeds(path: Path) -> Lexicon:
    """Stored seeds; older models have no rejected pairs."""
    stored = read_json(path)
    return Lexicon(
        [(str(a), str(b)) for a, b in stored["pairs"]],
        str(stored["name"]),
        rejected=tuple((str(a), str(b)) for a, b in stored.get("rejected", [])),
    )


def _pair(name: str) -> LanguagePair:
    first, second = name.split("-")
    return first, second

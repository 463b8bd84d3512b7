"""A model as a folder: safetensors, JSON, word lists and a card, checked by checksums.

Models of two languages and of many have one format:

config.json          format, languages, maps, confidences, and how it was made
README.md            a card for people; the one file that they may edit
SHA256SUMS           a checksum of every other file
languages/en/        the words of a language and their vectors in the common space
maps.safetensors     the maps, and CSLS's terms of every two languages
seeds/en-fi.json     the word pairs that were learned from
unknown/KIND/        what reads unknown words, in a model of two languages
subwords/en/         fastText's n-grams of a language, in a model of many

Folders of the first version, which had one layout for two languages and one for many, are still read.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

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
from bilex.core.languages import code_of
from bilex.core.manifest import CARD, CHECKSUMS, ModelFiles, checksums, write_checksums
from bilex.core.progress import SILENT, Progress
from bilex.core.typed_json import from_json
from bilex.fit.calibration import Calibration
from bilex.lexicon import Lexicon
from bilex.model.phrases import without_phrases
from bilex.model.provenance import ManyProvenance, Provenance
from bilex.model.space import CSLS_NEIGHBOURS, Floats, Side, Space
from bilex.model.unknown import load_source, load_subwords, save_subwords
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.model.many import ManyLanguages
    from bilex.model.translator import Translator

FORMAT, FORMAT_VERSION = "bilex-translator", 2
_FIRST_MANY = "bilex-many"  # the format that many languages had in the first version
CONFIG, MAPS = "config.json", "maps.safetensors"
_LANGUAGES, _SEEDS, _UNKNOWN, _SUBWORDS = "languages", "seeds", "unknown", "subwords"
_PARTS = (CONFIG, MAPS, _LANGUAGES, _SEEDS, _UNKNOWN, _SUBWORDS, "seeds.json", "source", "target")
_SIDES: tuple[Side, Side] = ("source", "target")

Two = tuple[str, str]
Terms = tuple[Floats, Floats]
Made = TypeVar("Made", Provenance, ManyProvenance)


@dataclass(frozen=True)
class Description(Generic[Made]):
    """What a model says about itself; `config` holds what else its configuration says of two languages."""

    provenance: Made
    words: Mapping[str, int]
    seeds: Mapping[Two, Lexicon]
    calibrations: Mapping[Two, Calibration]
    config: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(many: ManyLanguages) -> Description[ManyProvenance]:
        """The description of an open model of many languages."""
        words = {code: len(vocabulary) for code, vocabulary in many.vocabularies.items()}
        return Description(many.provenance, words, many.seeds, many.calibrations)


def save_translator(translator: Translator, folder: str | Path) -> None:
    """Write a translator."""
    from bilex.model.card import card
    from bilex.model.many import CODE, ManyLanguages

    check_destination(folder)
    space, made = translator.whole_space, translator.provenance
    source, target = made.languages
    two: Two = _SIDES
    if source and target and CODE.fullmatch(source) and CODE.fullmatch(target):
        two = source, target
    model = ManyLanguages(
        dict(zip(two, (space.source, space.target), strict=True)),
        dict(zip(two, (translator.source_map, translator.target_map), strict=True)),
        {two: translator.seeds},
        {two: translator.calibration},
        lowercase=translator.lowercase,
    )
    model.csls_terms[two] = space.neighbourhoods()
    more = {"unknown": [reader.kind for reader in translator.unknown], **made.as_dict()}
    with _written(model, folder, more, card(translator), space.metric) as path:
        for reader in translator.unknown:
            (path / _UNKNOWN / reader.kind).mkdir(parents=True)
            reader.save(path / _UNKNOWN / reader.kind)


def save_many(many: ManyLanguages, folder: str | Path, progress: Progress = SILENT) -> None:
    """Write a model of many languages; CSLS's terms of every two languages are measured for it."""
    from bilex.model.card import many_card

    check_destination(folder)
    with progress.task("Measuring neighbourhoods", len(many.language_pairs)) as task:
        for two in many.language_pairs:
            many.terms(two)
            task.advance()
    with _written(many, folder, many.provenance.as_dict(), many_card(many)) as path:
        for language, ngrams in many.subwords.items():
            save_subwords(ngrams, path / _SUBWORDS / language)


@contextlib.contextmanager
def _written(
    model: ManyLanguages, folder: str | Path, more: Mapping[str, Any], card: str, metric: str = "cosine"
) -> Iterator[Path]:
    """Write a model's folder, with what the block adds to it, all of it or nothing."""
    from safetensors.numpy import save_file

    states = {language: into.state(f"map.{language}") for language, into in model.maps.items()}
    tensors: dict[str, Any] = {}
    for _, state in states.values():
        tensors |= state
    for two in model.language_pairs:
        for side, means in zip(_SIDES, model.terms(two), strict=True):
            tensors[f"terms.{'-'.join(two)}.{side}"] = np.ascontiguousarray(means)
    content = card.encode("utf-8")
    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "languages": model.languages,
        "words": {language: len(words) for language, words in model.vocabularies.items()},
        "metric": metric,
        "dim": model.vocabularies[model.languages[0]].dim,
        "lowercase": model.lowercase,
        "csls_neighbours": CSLS_NEIGHBOURS,
        "maps": {language: steps for language, (steps, _) in states.items()},
        "calibrations": {"-".join(two): found.as_dict() for two, found in model.calibrations.items()},
        **more,
        "card_sha256": hashlib.sha256(content).hexdigest(),
    }
    with atomic_folder(folder, own_files=own_files) as path:
        for language, words in model.vocabularies.items():
            words.save(path / _LANGUAGES / language, "safetensors")
        save_file(tensors, path / MAPS)
        (path / _SEEDS).mkdir()
        for two, seeds in model.seeds.items():
            pairs = {"name": seeds.name, "pairs": list(seeds.pairs), "rejected": list(seeds.rejected)}
            (path / _SEEDS / f"{'-'.join(two)}.json").write_text(json_text(pairs), encoding="utf-8")
        yield path
        (path / CONFIG).write_text(json_text(config), encoding="utf-8")
        (path / CARD).write_bytes(content)
        write_checksums(path)


def replace_calibration(folder: str | Path, calibration: Calibration, more: dict[str, Any]) -> None:
    """Give a saved model of two languages other confidences; it is always the old model or the new one.

    Its large files are taken over as they are, by a link where the disk can do that. `more` is what its
    configuration says about the confidences besides.
    """
    path = Path(folder)
    opened = _Opened.of(path, many=False)
    config = {**read_json(path / CONFIG), **more}
    if "calibration" in config:  # the first version
        config["calibration"] = calibration.as_dict()
    else:
        config["calibrations"] = {"-".join(opened.languages): calibration.as_dict()}
    files = opened.files()
    files.compare(path)
    taken_over = {name: digest for name, digest in files.expected.items() if name != CONFIG}
    with atomic_folder(path, own_files=lambda found: {*own_files(found), CARD}) as made:
        for file in sorted(file for file in path.rglob("*") if file.is_file()):
            name = file.relative_to(path)
            if name.as_posix() not in (CONFIG, CHECKSUMS):
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                link_or_copy(file, made / name)
        (made / CONFIG).write_text(json_text(config), encoding="utf-8")
        write_checksums(made, taken_over)


def load_translator(
    folder: str | Path, *, languages: Two | None = None, verify: bool, device: str
) -> Translator:
    """Open a translator; the arguments are those of `Translator.load`."""
    from bilex.model.translator import Translator

    path = Path(folder)
    restore(path)
    if languages is not None and is_many(path):
        return load_many(path, verify=verify, device=device).pair(*languages)
    opened = _Opened.of(path, many=False)
    files = opened.files() if verify else ModelFiles(path)
    files.compare(path, but=path / _UNKNOWN)
    with fitting_together(path):
        model, config = opened.model(device), opened.config
        made = Provenance.from_dict(config)
        if languages is not None and tuple(code_of(n) or n for n in languages) != made.languages:
            one, other = made.language_names()
            raise BilexError(f"{path}: translates from {one} to {other}, not from {' to '.join(languages)}.")
        (two,) = model.language_pairs
        source, target = model.vocabularies.values()
        whole = Space(source, target, config["metric"], device)
        whole.keep_neighbourhoods(*model.csls_terms[two], config["csls_neighbours"])
        maps = dict(zip(_SIDES, model.maps.values(), strict=True))
        return Translator.of_parts(
            without_phrases(whole, made.composed),
            maps["source"],
            maps["target"],
            model.calibrations[two],
            [load_source(kind, path / _UNKNOWN / kind, maps, device, files) for kind in config["unknown"]],
            model.seeds[two],
            made,
            model.lowercase,
            whole,
        )


def load_many(folder: str | Path, *, verify: bool, device: str) -> ManyLanguages:
    """Open a model of many languages; the arguments are those of `ManyLanguages.load`."""
    opened = _Opened.of(Path(folder), many=True)
    if verify:
        opened.files().compare(opened.path)
    with fitting_together(opened.path):
        model = opened.model(device)
        model.provenance = from_json(ManyProvenance, opened.config)
        for code in model.languages:
            if (opened.path / _SUBWORDS / code).is_dir():
                model.subwords[code] = load_subwords(opened.path / _SUBWORDS / code)
        return model


def describe(folder: str | Path, *, verify: bool) -> Description[Provenance]:
    """Read what a model of two languages says about itself, without opening it.

    The files that are read are compared with their checksums; all others must be there and listed, and files
    of tensors as long as their headers say. `verify` compares all files, which reads the whole model.
    """
    facts = ("dim", "metric", "lowercase", "unknown")
    return _Opened.of(Path(folder), many=False).described(Provenance.from_dict, verify, facts)


def describe_many(folder: str | Path, *, verify: bool) -> Description[ManyProvenance]:
    """Read what a model of many languages says about itself; as `describe`."""
    opened = _Opened.of(Path(folder), many=True)
    return opened.described(partial(from_json, ManyProvenance), verify)


@dataclass(frozen=True)
class _Opened:
    """A model's folder with its configuration, that of an earlier version in the present shape.

    `first` says that it has the first version's layout of two languages.
    """

    path: Path
    config: dict[str, Any]
    first: bool = False

    @classmethod
    def of(cls, path: Path, *, many: bool) -> _Opened:
        """The folder of a model of two languages or of many, its format and version checked."""
        restore(path)
        if many and not is_many(path):
            raise BilexError(
                f"{path}: is not a model of several languages; make one with 'bilex join' or "
                "'bilex align-many'."
            )
        if not path.exists():
            raise BilexError(f"{path}: there is no such model; make one with 'bilex align ... -o {path}'.")
        if not (path / CONFIG).is_file():
            raise BilexError(
                f"{path}: is not a bilex model (no {CONFIG} in it); make one with 'bilex align'."
            )
        read_json(path / CONFIG)  # which says what is wrong with a broken one
        config = _config_or_none(path)
        if config is None:
            raise BilexError(
                f"{path}: is not a bilex model (its {CONFIG} does not say {FORMAT}); make one with "
                "'bilex align'."
            )
        version = config.get("format_version")
        if not isinstance(version, int) or version > FORMAT_VERSION:
            raise BilexError(
                f"{path}: has model format version {version}, and this bilex reads up to {FORMAT_VERSION}; "
                "install a newer bilex."
            )
        if not many and is_many(path):
            raise BilexError(
                f"{path}: is a model of several languages; name two of them (--from and --to, or "
                "the argument languages of Translator.load)."
            )
        with fitting_together(path):
            if config["format"] == _FIRST_MANY:
                return cls(path, _with_words(path, config))
            return cls(path, _upgraded(config), first=True) if version == 1 else cls(path, config)

    @property
    def languages(self) -> list[str]:
        """The names of the languages' folders."""
        return [str(language) for language in self.config["languages"]]

    def files(self) -> ModelFiles:
        """The files, which must all be there and listed with their checksums."""
        return ModelFiles.listed(self.path, _PARTS)

    def described(
        self, read: Callable[[dict[str, Any]], Made], verify: bool, facts: Collection[str] = ()
    ) -> Description[Made]:
        """What the model says about itself; `read` gives its provenance."""
        files = self.files()
        if verify:
            files.compare(self.path)
        else:
            files.compare(*(self.path / name for name in (CONFIG, _SEEDS, "seeds.json")))
            for name in files.expected:
                _check_length(self.path / name)
        with fitting_together(self.path):
            words = {name: int(self.config["words"][name]) for name in self.languages}
            config = {name: self.config[name] for name in facts}
            return Description(read(self.config), words, self.seeds(), self.calibrations(), config)

    def seeds(self) -> dict[Two, Lexicon]:
        """The word pairs that the model was learned from, by two languages."""
        if self.first:
            return {_SIDES: _read_seeds(self.path / "seeds.json")}
        files = sorted((self.path / _SEEDS).glob("*.json"))
        return {_two(file.stem): _read_seeds(file) for file in files}

    def calibrations(self) -> dict[Two, Calibration]:
        """The confidences, by two languages."""
        stored = self.config["calibrations"]
        return {_two(name): Calibration.from_dict(found) for name, found in stored.items()}

    def model(self, device: str) -> ManyLanguages:
        """Everything but the provenance and what reads unknown words; vectors are memory-mapped."""
        from safetensors.numpy import load_file

        from bilex.model.many import ManyLanguages

        config, tensors = self.config, load_file(self.path / MAPS)
        folder = self.path if self.first else self.path / _LANGUAGES
        map_of, terms_of = ("{}_map", "r_{1}") if self.first else ("map.{}", "terms.{0}.{1}")
        model = ManyLanguages(
            {code: WordVectors.load(folder / code, lowercase=False, verify=False) for code in self.languages},
            {
                code: Map.from_state(map_of.format(code), config["maps"][code], tensors.__getitem__)
                for code in self.languages
            },
            self.seeds(),
            self.calibrations(),
            lowercase=bool(config["lowercase"]),
            device=device,
        )
        stored = {name.split(".")[1] for name in tensors if name.startswith("terms.")}
        for pair in ["-".join(_SIDES)] if self.first else sorted(stored):
            source, target = (tensors[terms_of.format(pair, side)] for side in _SIDES)
            model.csls_terms[_two(pair)] = source, target
        return model


def _upgraded(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration of the first version's models of two languages, in the present shape."""
    return {
        **config,
        "languages": list(_SIDES),
        "words": {side: config[f"{side}_words"] for side in _SIDES},
        "maps": {side: config[f"{side}_map"] for side in _SIDES},
        "calibrations": {"-".join(_SIDES): config["calibration"]},
    }


def _with_words(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """The configuration of the first version's models of many languages, with the words counted."""
    from bilex.vectors.folder import word_count

    words = {name: word_count(path / _LANGUAGES / name) for name in map(str, config["languages"])}
    return {**config, "words": words}


def is_model(folder: str | Path) -> bool:
    """Whether a folder holds a saved model of two languages, of whatever version."""
    return holds_model(folder) and not is_many(folder)


def is_many(folder: str | Path) -> bool:
    """Whether a folder holds a saved model of many languages, of whatever version."""
    config = _config_or_none(folder)
    if config is None:
        return False
    return config["format"] == _FIRST_MANY or ("maps" in config and "unknown" not in config)


def holds_model(folder: str | Path) -> bool:
    """Whether a folder holds a saved model of any kind and version."""
    return _config_or_none(folder) is not None


def own_files(path: Path) -> Collection[str]:
    """The files in a folder that saving a model wrote; none if it is no model. An edited card is not ours."""
    config = _config_or_none(path)
    if config is None:
        return ()
    files = {CHECKSUMS, *checksums(path)}
    card = path / CARD
    if card.is_file() and sha256(card) == config.get("card_sha256"):
        files.add(CARD)
    return files


def check_destination(folder: str | Path) -> None:
    """Make sure, before hours of work, that a model may be saved in a folder."""
    check_replaceable(Path(folder), own_files)
    check_writable(folder)


def read_config(path: Path) -> dict[str, Any]:
    """The configuration of a model of two languages, in the present version's shape."""
    opened = _Opened.of(path, many=False)
    with fitting_together(path):
        words = zip(_SIDES, opened.languages, strict=True)
        return {**opened.config, **{f"{side}_words": opened.config["words"][name] for side, name in words}}


def read_provenance(path: Path) -> Provenance:
    """From what and how a saved model was made, without opening it."""
    config = read_config(path)
    with fitting_together(path):
        return Provenance.from_dict(config)


@contextlib.contextmanager
def fitting_together(path: Path) -> Iterator[None]:
    """Turn what goes wrong while the parts of a model are put together into one sentence."""
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
    """Seeds as they are stored; older models have no rejected pairs."""
    stored = read_json(path)
    return Lexicon(
        [(str(a), str(b)) for a, b in stored["pairs"]],
        str(stored["name"]),
        rejected=tuple((str(a), str(b)) for a, b in stored.get("rejected", [])),
    )


def _config_or_none(folder: str | Path) -> dict[str, Any] | None:
    try:
        config = read_json(Path(folder) / CONFIG)
    except BilexError:
        return None
    ours = isinstance(config, dict) and config.get("format") in (FORMAT, _FIRST_MANY)
    return config if ours else None


def _two(name: str) -> Two:
    first, second = name.split("-")
    return first, second

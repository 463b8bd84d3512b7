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
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
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
from bilex.core.typed_json import as_json, from_json
from bilex.fit.calibration import Calibration
from bilex.lexicon import Lexicon
from bilex.model.phrases import without_phrases
from bilex.model.provenance import ManyProvenance, Provenance
from bilex.model.space import CSLS_NEIGHBOURS, Floats, Side, Space
from bilex.model.unknown import load_source, load_subwords, save_subwords
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.model.many.core import ManyLanguages
    from bilex.model.translator import Translator

FORMAT, FORMAT_VERSION = "bilex-translator", 2
_FIRST_MANY = "bilex-many"  # the format that many languages had in the first version
CONFIG, MAPS = "config.json", "maps.safetensors"
_LANGUAGES, _SEEDS, _UNKNOWN, _SUBWORDS = "languages", "seeds", "unknown", "subwords"
_PARTS = (CONFIG, MAPS, _LANGUAGES, _SEEDS, _UNKNOWN, _SUBWORDS, "seeds.json", "source", "target")
_SIDES: tuple[Side, Side] = ("source", "target")
_CODE = re.compile("[A-Za-z0-9_]+")
_DAMAGE = (AttributeError, LookupError, TypeError, ValueError, OverflowError, OSError)

Two = tuple[str, str]
Terms = tuple[Floats, Floats]


@dataclass(frozen=True)
class _Parts:
    """What the folders of all models hold, by language and by two languages."""

    vocabularies: Mapping[str, WordVectors]
    maps: Mapping[str, Map]
    terms: Mapping[Two, Terms]
    seeds: Mapping[Two, Lexicon]
    calibrations: Mapping[Two, Calibration]
    lowercase: bool
    metric: str = "cosine"
    csls_neighbours: int = CSLS_NEIGHBOURS


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

    check_destination(folder)
    space, made = translator.whole_space, translator.provenance
    two = _folder_names(made.languages)
    parts = _Parts(
        dict(zip(two, (space.source, space.target), strict=True)),
        dict(zip(two, (translator.source_map, translator.target_map), strict=True)),
        {two: space.neighbourhoods()},
        {two: translator.seeds},
        {two: translator.calibration},
        translator.lowercase,
        space.metric,
    )

    def write_readers(path: Path) -> None:
        for reader in translator.unknown:
            (path / _UNKNOWN / reader.kind).mkdir(parents=True)
            reader.save(path / _UNKNOWN / reader.kind)

    more = {"unknown": [reader.kind for reader in translator.unknown], **made.as_dict()}
    _write(folder, parts, more, card(translator), write_readers)


def save_many(many: ManyLanguages, folder: str | Path, progress: Progress = SILENT) -> None:
    """Write a model of many languages; CSLS's terms of every two languages are measured for it."""
    from bilex.model.card import many_card

    check_destination(folder)
    terms: dict[Two, Terms] = {}
    with progress.task("Measuring neighbourhoods", len(many.language_pairs)) as task:
        for two in many.language_pairs:
            terms[two] = many.terms(two)
            task.advance()
    parts = _Parts(many.vocabularies, many.maps, terms, many.seeds, many.calibrations, many.lowercase)

    def write_subwords(path: Path) -> None:
        for language, ngrams in many.subwords.items():
            save_subwords(ngrams, path / _SUBWORDS / language)

    _write(folder, parts, as_json(many.provenance), many_card(many), write_subwords)


def _write(
    folder: str | Path,
    parts: _Parts,
    more: Mapping[str, Any],
    card: str,
    write_readers: Callable[[Path], None],
) -> None:
    """Write a model's folder, all of it or nothing."""
    from safetensors.numpy import save_file

    tensors: dict[str, Any] = {}
    steps: dict[str, list[str]] = {}
    for language, into in parts.maps.items():
        steps[language], state = into.state(f"map.{language}")
        tensors |= state
    for two, terms in parts.terms.items():
        for side, means in zip(_SIDES, terms, strict=True):
            tensors[f"terms.{_named(two)}.{side}"] = np.ascontiguousarray(means)
    content = card.encode("utf-8")
    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "languages": list(parts.vocabularies),
        "words": {language: len(words) for language, words in parts.vocabularies.items()},
        "metric": parts.metric,
        "dim": next(iter(parts.vocabularies.values())).dim,
        "lowercase": parts.lowercase,
        "csls_neighbours": parts.csls_neighbours,
        "maps": steps,
        "calibrations": {_named(two): found.as_dict() for two, found in parts.calibrations.items()},
        **more,
        "card_sha256": hashlib.sha256(content).hexdigest(),
    }
    with atomic_folder(folder, own_files=own_files) as path:
        for language, words in parts.vocabularies.items():
            words.save(path / _LANGUAGES / language, "safetensors")
        save_file(tensors, path / MAPS)
        (path / _SEEDS).mkdir()
        for two, seeds in parts.seeds.items():
            pairs = {"name": seeds.name, "pairs": list(seeds.pairs), "rejected": list(seeds.rejected)}
            (path / _SEEDS / f"{_named(two)}.json").write_text(json_text(pairs), encoding="utf-8")
        write_readers(path)
        (path / CONFIG).write_text(json_text(config), encoding="utf-8")
        (path / CARD).write_bytes(content)
        write_checksums(path)


def replace_calibration(folder: str | Path, calibration: Calibration, more: dict[str, Any]) -> None:
    """Give a saved model of two languages other confidences; it is always the old model or the new one.

    Its large files are taken over as they are, by a link where the disk can do that.

    Args:
        folder: The model.
        calibration: Its new confidences.
        more: What its configuration says about them besides.
    """
    path = Path(folder)
    opened = _opened_two(path)
    config = {**read_json(path / CONFIG), **more}
    if "calibration" in config:  # the first version
        config["calibration"] = calibration.as_dict()
    else:
        config["calibrations"] = {_named(opened.pair): calibration.as_dict()}
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
    opened = _opened_two(path)
    files = opened.files() if verify else ModelFiles(path)
    files.compare(path, but=path / _UNKNOWN)
    config, two = opened.config, opened.pair
    with fitting_together(path):
        parts = opened.parts()
        provenance = Provenance.from_dict(config)
        if languages is not None and tuple(code_of(n) or n for n in languages) != provenance.languages:
            one, other = provenance.language_names()
            raise BilexError(f"{path}: translates from {one} to {other}, not from {' to '.join(languages)}.")
        source, target = (parts.vocabularies[name] for name in two)
        whole = Space(source, target, config["metric"], device)
        whole.keep_neighbourhoods(*parts.terms[two], config["csls_neighbours"])
        maps: dict[Side, Map] = {side: parts.maps[name] for side, name in zip(_SIDES, two, strict=True)}
        return Translator.of_parts(
            without_phrases(whole, provenance.composed),
            maps["source"],
            maps["target"],
            parts.calibrations[two],
            [load_source(kind, path / _UNKNOWN / kind, maps, device, files) for kind in config["unknown"]],
            parts.seeds[two],
            provenance,
            parts.lowercase,
            whole,
        )


def load_many(folder: str | Path, *, verify: bool, device: str) -> ManyLanguages:
    """Open a model of many languages; the arguments are those of `ManyLanguages.load`."""
    from bilex.model.many.core import ManyLanguages

    path = Path(folder)
    restore(path)
    opened = _opened_many(path)
    if verify:
        opened.files().compare(path)
    with fitting_together(path):
        parts = opened.parts()
        ngrams = {
            code: load_subwords(path / _SUBWORDS / code)
            for code in parts.vocabularies
            if (path / _SUBWORDS / code).is_dir()
        }
        many = ManyLanguages(
            dict(parts.vocabularies),
            dict(parts.maps),
            dict(parts.seeds),
            dict(parts.calibrations),
            ngrams,
            from_json(ManyProvenance, opened.config),
            parts.lowercase,
            device,
        )
        for two, terms in parts.terms.items():
            many.keep_terms(two, terms)
        return many


def describe(folder: str | Path, *, verify: bool) -> Description[Provenance]:
    """Read what a model of two languages says about itself, without opening it.

    The files that are read are compared with their checksums; all others must be there and listed, and files
    of tensors as long as their headers say. `verify` compares all files, which reads the whole model.
    """
    restore(Path(folder))
    return _opened_two(Path(folder)).described(Provenance.from_dict, verify)


def describe_many(folder: str | Path, *, verify: bool) -> Description[ManyProvenance]:
    """Read what a model of many languages says about itself; as `describe`."""
    restore(Path(folder))
    return _opened_many(Path(folder)).described(partial(from_json, ManyProvenance), verify)


@dataclass(frozen=True)
class _Opened:
    """A model's folder with its configuration, that of an earlier version in the present shape.

    `first` says that it has the first version's layout of two languages.
    """

    path: Path
    config: dict[str, Any]
    first: bool = field(default=False)

    @classmethod
    def of(cls, path: Path) -> _Opened:
        """The folder, its format and version checked."""
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
        with fitting_together(path):
            if config["format"] == _FIRST_MANY:
                return cls(path, _with_words(path, config))
            return cls(path, _upgraded(config), first=True) if version == 1 else cls(path, config)

    @property
    def many(self) -> bool:
        """Whether it was saved as a model of many languages."""
        return "unknown" not in self.config

    @property
    def languages(self) -> list[str]:
        """The names of the languages' folders."""
        return [str(language) for language in self.config["languages"]]

    @property
    def pair(self) -> Two:
        """The two languages of a model of two."""
        source, target = self.languages
        return source, target

    def files(self) -> ModelFiles:
        """The files, which must all be there and listed with their checksums."""
        return ModelFiles.listed(self.path, _PARTS)

    def described(self, read: Callable[[dict[str, Any]], Made], verify: bool) -> Description[Made]:
        """What the model says about itself; `read` gives its provenance."""
        files = self.files()
        if verify:
            files.compare(self.path)
        else:
            files.compare(*(self.path / name for name in (CONFIG, _SEEDS, "seeds.json")))
            _check_lengths(self.path / name for name in files.expected if name.endswith(".safetensors"))
        with fitting_together(self.path):
            words = {name: int(self.config["words"][name]) for name in self.languages}
            seeds, calibrations = self.seeds(), self.calibrations()
            facts: dict[str, Any] = {}
            if not self.many:
                two = self.pair
                seeds, calibrations = {two: seeds[two]}, {two: calibrations[two]}
                facts = {name: self.config[name] for name in ("dim", "metric", "lowercase", "unknown")}
            return Description(read(self.config), words, seeds, calibrations, facts)

    def seeds(self) -> dict[Two, Lexicon]:
        """The word pairs that the model was learned from, by two languages."""
        if self.first:
            return {self.pair: _read_seeds(self.path / "seeds.json")}
        files = sorted((self.path / _SEEDS).glob("*.json"))
        return {_two(file.stem): _read_seeds(file) for file in files}

    def calibrations(self) -> dict[Two, Calibration]:
        """The confidences, by two languages."""
        stored = self.config["calibrations"]
        return {_two(name): Calibration.from_dict(found) for name, found in stored.items()}

    def parts(self) -> _Parts:
        """Everything but what reads unknown words; vectors are memory-mapped."""
        from safetensors.numpy import load_file

        config, tensors = self.config, load_file(self.path / MAPS)
        folder = self.path if self.first else self.path / _LANGUAGES
        maps = {
            code: Map.from_state(
                f"{code}_map" if self.first else f"map.{code}", config["maps"][code], tensors.__getitem__
            )
            for code in self.languages
        }
        if self.first:
            terms = {self.pair: (tensors["r_source"], tensors["r_target"])}
        else:
            pairs = {name.split(".")[1] for name in tensors if name.startswith("terms.")}
            terms = {
                _two(pair): (tensors[f"terms.{pair}.source"], tensors[f"terms.{pair}.target"])
                for pair in sorted(pairs)
            }
        return _Parts(
            {code: WordVectors.load(folder / code, lowercase=False, verify=False) for code in self.languages},
            maps,
            terms,
            self.seeds(),
            self.calibrations(),
            bool(config["lowercase"]),
        )


def _opened_two(path: Path) -> _Opened:
    """The folder of a model of two languages."""
    opened = _Opened.of(path)
    if opened.many:
        raise BilexError(
            f"{path}: is a model of several languages; name two of them (--from and --to, or "
            "the argument languages of Translator.load)."
        )
    return opened


def _opened_many(path: Path) -> _Opened:
    """The folder of a model of many languages."""
    if not is_many(path):
        raise BilexError(
            f"{path}: is not a model of several languages; make one with 'bilex join' or 'bilex align-many'."
        )
    return _Opened.of(path)


def _upgraded(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration of the first version's models of two languages, in the present shape."""
    return {
        **config,
        "languages": list(_SIDES),
        "words": {side: config[f"{side}_words"] for side in _SIDES},
        "maps": {side: config[f"{side}_map"] for side in _SIDES},
        "calibrations": {_named(_SIDES): config["calibration"]},
    }


def _with_words(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """The configuration of the first version's models of many languages, with the words counted."""
    from bilex.vectors.folder import word_count

    words = {name: word_count(path / _LANGUAGES / name) for name in map(str, config["languages"])}
    return {**config, "words": words}


def is_model(folder: str | Path) -> bool:
    """Whether a folder holds a saved model of two languages, of whatever version."""
    config = _config_or_none(folder)
    return config is not None and config["format"] == FORMAT and not is_many(folder)


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
    opened = _opened_two(path)
    with fitting_together(path):
        words = {
            f"{side}_words": opened.config["words"][name]
            for side, name in zip(_SIDES, opened.pair, strict=True)
        }
        return {**opened.config, **words}


def read_provenance(path: Path) -> Provenance:
    """From what and how a saved model was made, without opening it."""
    config = read_config(path)
    with fitting_together(path):
        return Provenance.from_dict(config)


@contextlib.contextmanager
def fitting_together(path: Path) -> Iterator[None]:
    """Turn what goes wrong while the parts of a model are put together into one sentence."""
    from safetensors import SafetensorError

    try:
        yield
    except (
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        OverflowError,
        OSError,
        SafetensorError,
    ) as why:
        raise BilexError(f"{path}: the model's files do not fit together ({why}); make it again.") from why


def _check_lengths(files: Iterable[Path]) -> None:
    """Make sure that files of tensors are as long as their headers say; nothing else of them is read."""
    from safetensors import SafetensorError, safe_open

    for file in files:
        try:
            with safe_open(file, framework="numpy"):
                pass
        except (SafetensorError, OSError, ValueError) as error:
            raise BilexError(
                f"{file}: is cut off or damaged ({error}); copy or make the model again."
            ) from error


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


def _folder_names(languages: tuple[str | None, str | None]) -> Two:
    """The codes of two languages, or the names of the sides where one cannot be a folder's name."""
    source, target = languages
    if source and target and _CODE.fullmatch(source) and _CODE.fullmatch(target):
        return source, target
    return _SIDES


def _named(two: Two) -> str:
    """Two languages in the name of a file or a tensor."""
    return "-".join(two)


def _two(name: str) -> Two:
    first, second = name.split("-")
    return first, second

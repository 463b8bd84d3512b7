"""A grid: which methods, language models and λ are run on which pairs with which seeds.

The tables of its TOML file are pydantic models, which check every key and value before anything runs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from bilex.aligners import get_method
from bilex.core.errors import BilexError, nearest_name
from bilex.encoders.settings import DEFAULT_MIXING, TuningPreset, TuningSettings, lightened
from bilex_bench.datasets import NO_SEEDS, DataFolder
from bilex_bench.datasets.folder import swapped
from bilex_bench.reported import LM_NAMES
from bilex_bench.results import Mixing, Setup
from bilex_bench.toml_file import Place, Strict, TomlFile, typed_values

SAMPLE, NO_MODEL, ALL = "sample", "none", "all"
# In the order in which a reader meets them.
_READY = (
    *("quick", "paper-main", "paper-panlex", "paper-c2-over-others", "paper-lms"),
    *("paper-ablation", "paper-lambda", "shared-data", "no-seeds"),
)
_SHORT_NAMES = LM_NAMES | {
    "xlm-roberta-base": "XLM-R",
    "intfloat/multilingual-e5-small": "E5",
    "e5-small-q4": "E5",
}
_SETTINGS_OF_GRID = ("device", "seed")  # settings of an aligner that the whole grid decides


def _names(value: Any) -> tuple[str, ...]:
    """One text or several."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError("give a text in quotes or a list of them, or leave it out")
    return tuple(dict.fromkeys(names))


def _mixings(value: Any) -> tuple[Mixing, ...]:
    """One λ or several."""
    mixings = value if isinstance(value, list | tuple) else [value]
    numbers = [mixing for mixing in mixings if mixing != "auto"]
    if not mixings or not all(type(number) in (int, float) and 0 <= number <= 1 for number in numbers):
        raise ValueError('give a λ from 0 to 1 or "auto", or a list of them')
    return tuple(dict.fromkeys(m if m == "auto" else float(m) for m in mixings))


def _limit(value: Any) -> int | None:
    if value == ALL or value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError('give a number of words, or "all"')
    return value


@contextmanager
def _value_errors() -> Iterator[None]:
    """Turn a sentence of the library into an error that pydantic reports with its place."""
    try:
        yield
    except BilexError as error:
        raise ValueError(str(error)) from error


def _method(name: str) -> str:
    with _value_errors():
        return get_method(name).name


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


class Restricted(Strict):
    """A table that applies to some pairs and seeds only."""

    pairs: Names | None = None  # None, here and below, for all of the grid
    seeds: Names | None = None

    def allows(self, pair: str, seeds: str) -> bool:
        """Whether it applies to a pair and a seed dictionary."""
        return (self.pairs is None or pair in self.pairs) and (self.seeds is None or seeds in self.seeds)


class DataEntry(Restricted):
    """A data set of a grid, `[data.NAME]`; its name also chooses among sets of dictionaries in the folder."""

    path: str | None = None  # None if it is given on the command line, or for the packaged sample
    vectors: str | None = None  # as in `DataFolder.open`


class LmEntry(Restricted):
    """A language model on top of a method, `[[method.lm]]`."""

    name: str
    label: str | None = None  # its name in tables; "{lm}" stands for the model's short name
    tune: bool = True
    # where not the model's own; "preset" names a lighter preset
    tuning: dict[str, Any] = Field(default_factory=dict)
    mixing: Annotated[tuple[Mixing, ...], BeforeValidator(_mixings)] = (DEFAULT_MIXING,)
    samples: bool = False  # whether vectors are kept for plots

    @field_validator("tuning")
    @classmethod
    def _check_tuning(cls, given: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if given and not info.data.get("tune", True):
            raise ValueError("it has no meaning with tune = false; take one of them out")
        hints = get_type_hints(TuningSettings)
        kinds = {"preset": TuningPreset} | {field.name: hints[field.name] for field in fields(TuningSettings)}
        tuning = typed_values(given, kinds)
        settings = {name: value for name, value in tuning.items() if name != "preset"}
        with _value_errors():
            replace(lightened(TuningSettings(), tuning.get("preset", "paper")), **settings)
        return settings if tuning.get("preset") == "paper" else tuning


class MethodEntry(Restricted):
    """A method of a grid, `[[method]]`, with the language models on top of it."""

    name: Annotated[str, AfterValidator(_method)]
    label: str | None = None  # its name in tables; None for the aligner's
    settings: dict[str, Any] = Field(default_factory=dict)  # where not the defaults
    samples: bool = False  # whether vectors are kept for plots
    lm: list[LmEntry] = Field(default_factory=list)

    @field_validator("settings")
    @classmethod
    def _check_settings(cls, given: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if "name" not in info.data:  # which is an error of its own
            return given
        method = get_method(info.data["name"])
        hints, defaults = get_type_hints(method), method.settings_fields()
        kinds = {name: hints[name] for name in defaults if name not in _SETTINGS_OF_GRID}
        settings = typed_values(given, kinds)
        settings = {name: value for name, value in settings.items() if value != defaults[name]}
        with _value_errors():
            method(**settings)
        return settings


class Common(Strict):
    """What holds for the whole grid, `[grid]`."""

    pairs: Names = (ALL,)  # "all" for all that a data set has dictionaries for
    seeds: Names | None = None  # "0" for none
    limit: Annotated[int | None, BeforeValidator(_limit)] = 200_000  # words per language; None for all
    seed: int = 0  # the random seed
    device: Literal["auto", "cpu", "cuda"] = "auto"
    sample_pairs: Names | None = None  # pairs whose vectors are kept; None for the first of a data set


class GridFile(Strict):
    """A whole file."""

    about: str = ""  # what the grid is for, in one sentence
    grid: Common = Common()
    data: dict[str, DataEntry] = Field(default_factory=dict)
    method: list[MethodEntry] = Field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What to run."""

    name: str
    common: Common
    data: Mapping[str, DataEntry]
    methods: Sequence[MethodEntry]
    file: TomlFile

    @classmethod
    def read(cls, name: str | Path) -> Grid:
        """Read a grid by its name (`bilex benchmark grids` lists those that are ready) or its TOML file."""
        path = Path(name)
        if str(name) in _READY:
            title, folder, file = str(name), Path(), TomlFile(str(name), ready_text(str(name)))
        elif path.exists():
            title, folder, file = path.stem, path.parent, TomlFile.read(path)
        else:
            raise BilexError(
                f"{name}: there is neither such a file nor a ready grid of that name; ready are "
                f"{', '.join(_READY)}.{nearest_name(str(name), _READY)}"
            )
        content = file.load(GridFile)
        if not content.data:
            raise file.error('the grid has no data; write [data.NAME] with path = "FOLDER".')
        if content.grid.seeds is None and not all(entry.seeds for entry in content.data.values()):
            message = '\'seeds\' is missing in [grid]; name seed dictionaries, such as ["5k", "1k"].'
            raise file.error(message, "grid")
        if not content.method:
            raise file.error('the grid has no methods; write [[method]] with name = "c1", say.')
        data = {}
        for key, entry in content.data.items():
            given = {"path": entry.path, "vectors": entry.vectors}
            paths = {part: str(folder / Path(path).expanduser()) for part, path in given.items() if path}
            data[key] = entry.model_copy(update=paths)
        grid = cls(name=title, common=content.grid, data=data, methods=content.method, file=file)
        grid._check_restrictions()
        return grid

    def choosing(
        self,
        *,
        data: Sequence[str] = (),
        lm: str | None = None,
        pairs: Sequence[str] = (),
        seeds: Sequence[str] = (),
        limit: int | None = None,
        device: str | None = None,
    ) -> Grid:
        """This grid with other choices, as given on a command line.

        `data` has "NAME=FOLDER" texts, or one "FOLDER" for a grid with one data set. `lm` replaces every
        language model of the grid, "none" removes them; labels with "{lm}" follow. Methods that are
        restricted to other pairs than `pairs` are left out.
        """
        given = {"pairs": tuple(pairs), "seeds": tuple(seeds), "limit": limit, "device": device}
        chosen = {name: value for name, value in given.items() if value}
        own: dict[str, None] = {name: None for name in ("pairs", "seeds") if name in chosen}
        methods = list(self.methods)
        for number, method in enumerate(self.methods if lm else ()):
            models = [] if lm == NO_MODEL else [entry.model_copy(update={"name": lm}) for entry in method.lm]
            methods[number] = method.model_copy(update={"lm": models})
        return replace(
            self,
            common=self.common.model_copy(update=chosen),
            data={name: entry.model_copy(update=own) for name, entry in self._placed(data).items()},
            methods=methods,
        )

    def _placed(self, data: Sequence[str]) -> dict[str, DataEntry]:
        """The data entries with the folders given."""
        entries = dict(self.data)
        for text in data:
            name, equals, folder = text.partition("=")
            if len(entries) == 1 and name not in entries and (not equals or Path(text).is_dir()):
                name, folder = next(iter(entries)), text
            if name not in entries:
                raise BilexError(
                    f"--data {text}: write it as NAME=FOLDER; grid '{self.name}' has the data "
                    f"{', '.join(entries)}.{nearest_name(name, entries) if equals else ''}"
                )
            placed = {"path": str(Path(folder).expanduser()), "vectors": None}
            entries[name] = entries[name].model_copy(update=placed)
        return entries

    def open_data(self) -> dict[str, DataFolder]:
        """The data sets; no vectors are read."""
        folders = {}
        for name, entry in self.data.items():
            if entry.path is not None:
                folders[name] = DataFolder.open(Path(entry.path), name, vectors=entry.vectors)
            elif name == SAMPLE:
                folders[name] = DataFolder.sample()
            else:
                raise BilexError(
                    f"grid '{self.name}': has no path for the data '{name}'; give --data {name}=FOLDER, "
                    "or see 'bilex data get'."
                )
        return folders

    def setups(self, datasets: Mapping[str, DataFolder]) -> list[Setup]:
        """Every setup of the grid on the data sets of `open_data`, pair by pair.

        Two setups may have one `key` and two labels: one experiment under two names, which is run once.
        """
        found: dict[tuple[str, str, str, str], Setup] = {}
        for setup, _, place in self._rows(datasets):
            name = (setup.dataset, setup.pair, setup.seeds, setup.label)
            if name in found and found[name].key != setup.key:
                raise self.file.error(
                    f"label '{setup.label}' stands for two different setups on {setup.pair} with "
                    f"{setup.seeds} seeds; give one of them another label.",
                    *place,
                )
            found.setdefault(name, setup)
        if not found:
            raise BilexError(
                f"grid '{self.name}': has no setup left; its methods are restricted to other pairs or seeds."
            )
        return list(found.values())

    def sampled(self, datasets: Mapping[str, DataFolder]) -> frozenset[str]:
        """The keys of the setups whose vectors are kept for plots."""
        return frozenset(setup.key for setup, samples, _ in self._rows(datasets) if samples)

    def _rows(self, datasets: Mapping[str, DataFolder]) -> Iterator[tuple[Setup, bool, Place]]:
        """Each setup, whether its vectors are kept, and its place in the file."""
        self._check_pairs(datasets)
        run: dict[str, Any] = {"limit": self.common.limit, "seed": self.common.seed}
        for name, entry in self.data.items():
            known = datasets[name].dictionaries.pairs
            wanted = entry.pairs or self.common.pairs
            pairs = list(known) if wanted == (ALL,) else [pair for pair in wanted if _has(known, pair)]
            shown = [pair for pair in pairs if pair in (self.common.sample_pairs or ())] or pairs[:1]
            places = product(pairs, entry.seeds or self.common.seeds or (), self._variants())
            for pair, seeds, (tables, place, method) in places:
                if not all(table.allows(pair, seeds) for table in tables):
                    continue
                setup = Setup(dataset=name, pair=pair, seeds=seeds, **method, **run)
                if seeds == NO_SEEDS and get_method(setup.method).needs_seeds:
                    raise self.file.error(
                        f"method '{setup.method}' cannot do without seeds, and the grid has seeds "
                        f"\"{NO_SEEDS}\"; restrict the method with 'seeds'.",
                        *place,
                    )
                yield setup, tables[-1].samples and pair in shown, place

    def _variants(self) -> Iterator[tuple[Sequence[MethodEntry | LmEntry], Place, dict[str, Any]]]:
        """Each method alone and with language models: its tables, its place in the file, fields of setups."""
        for number, method in enumerate(self.methods):
            label = " ".join((method.label or method.name).split())
            alone = {"method": method.name, "settings": dict(method.settings), "label": label}
            yield [method], ("method", number), alone
            for place, lm in enumerate(method.lm):
                short = _SHORT_NAMES.get(lm.name) or lm.name.rstrip("/").rpartition("/")[2]
                usual = f"C2 ({label})" if lm.tune else f"{label}+{{lm}}"
                named = (lm.label or usual).replace("{lm}", short)
                for mixing in lm.mixing:
                    several = ", λ auto" if mixing == "auto" else f", λ = {mixing:g}"
                    stage = {"lm": lm.name, "tune": lm.tune, "tuning": dict(lm.tuning), "mixing": mixing}
                    stage["label"] = named + (several if len(lm.mixing) > 1 else "")
                    yield [method, lm], ("method", number, "lm", place), {**alone, **stage}

    def _named(self, key: str) -> Iterator[tuple[str, Place]]:
        """Each pair or seed dictionary that a method is restricted to, and its place in the file."""
        for tables, place, _ in self._variants():
            yield from ((name, (*place, key)) for name in getattr(tables[-1], key) or ())

    def _check_restrictions(self) -> None:
        """Check that restrictions name pairs and seeds of the grid, where it does not take all."""
        shown = [(pair, ("grid", "sample_pairs")) for pair in self.common.sample_pairs or ()]
        for key, named in (("pairs", [*self._named("pairs"), *shown]), ("seeds", self._named("seeds"))):
            entries = (self.common, *self.data.values())
            known = dict.fromkeys(name for entry in entries for name in getattr(entry, key) or ())
            for name, place in named:
                if name not in known and ALL not in known:
                    near = nearest_name(name, known)
                    raise self.file.error(
                        f"'{name}' is not among the grid's {', '.join(known)}.{near}", *place
                    )

    def _check_pairs(self, datasets: Mapping[str, DataFolder]) -> None:
        """Check that some data set has every pair named anywhere."""
        known = [pair for folder in datasets.values() for pair in folder.dictionaries.pairs]
        own = [self.common.pairs, *(entry.pairs or () for entry in self.data.values())]
        named = [(pair, f"grid '{self.name}'") for pairs in own for pair in pairs]
        named += [(pair, self.file.where(*place[:-1])) for pair, place in self._named("pairs")]
        for pair, where in named:
            if pair != ALL and not _has(known, pair):
                missing = f"pair '{pair}' has no dictionaries in {', '.join(datasets)}"
                raise BilexError(f"{where}: {missing}.{nearest_name(pair, known)}")


def _has(pairs: Collection[str], pair: str) -> bool:
    """Whether a pair is there in either direction: dictionaries are swapped if need be."""
    return pair in pairs or swapped(pair) in pairs


def ready_grids() -> dict[str, str]:
    """What each ready grid is for, in one sentence, by name."""
    return {name: str(tomllib.loads(ready_text(name))["about"]) for name in _READY}


def ready_text(name: str) -> str:
    """The TOML text of a ready grid."""
    if name not in _READY:
        raise BilexError(
            f"there is no ready grid '{name}'; there are {', '.join(_READY)}.{nearest_name(name, _READY)}"
        )
    return (resources.files("bilex_bench") / "grids" / f"{name}.toml").read_text(encoding="utf-8")

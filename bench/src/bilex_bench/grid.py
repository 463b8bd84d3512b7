"""A grid: which methods, language models and λ are run on which pairs with which seeds.

The tables of its TOML file are pydantic models, which check every key and value before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from bilex.aligners import get_method
from bilex.core.errors import BilexError, nearest_name
from bilex.encoders.settings import DEFAULT_MIXING
from bilex_bench.datasets import NO_SEEDS, DataFolder
from bilex_bench.results import Mixing, Setup

SAMPLE = "sample"
NO_MODEL = "none"
ALL = "all"
_SHORT_NAMES = {
    "bert-base-multilingual-uncased": "mBERT",
    "xlm-mlm-100-1280": "XLM",
    "google/mt5-small": "mT5",
    "xlm-roberta-base": "XLM-R",
    "intfloat/multilingual-e5-small": "E5",
    "e5-small-q4": "E5",
}


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


def _method(name: str) -> str:
    try:
        return get_method(name).name
    except BilexError as error:
        raise ValueError(str(error)) from error


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


class Strict(BaseModel):
    """A table that has no other keys than these, and no values of other kinds."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


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
    vectors: str | None = None  # as in `DataFolder.open`; None for the usual places in the folder


class LmEntry(Restricted):
    """A language model on top of a method, `[[method.lm]]`."""

    name: str
    label: str | None = None  # its name in tables; "{lm}" stands for the model's short name
    tune: bool = True
    tuning: dict[str, Any] = {}  # what differs from the model's own; "preset" names a lighter preset
    mixing: Annotated[tuple[Mixing, ...], BeforeValidator(_mixings)] = (DEFAULT_MIXING,)
    samples: bool = False  # whether vectors are kept for plots

    def label_at(self, method: str, mixing: Mixing) -> str:
        """The label over the method of that label at one λ, which is named where there are several."""
        usual = f"C2 ({method})" if self.tune else f"{method}+{{lm}}"
        short = _SHORT_NAMES.get(self.name) or self.name.rstrip("/").rpartition("/")[2]
        label = (self.label or usual).replace("{lm}", short)
        if len(self.mixing) == 1:
            return label
        return f"{label}, λ {mixing}" if mixing == "auto" else f"{label}, λ = {mixing:g}"


class MethodEntry(Restricted):
    """A method of a grid, `[[method]]`, with the language models on top of it."""

    name: Annotated[str, AfterValidator(_method)]
    label: str | None = None  # its name in tables; None for the aligner's
    settings: dict[str, Any] = {}  # those that differ from the defaults
    samples: bool = False  # whether vectors are kept for plots
    lm: list[LmEntry] = []


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
    grid: Common = Field(default_factory=Common)
    data: dict[str, DataEntry] = {}
    method: list[MethodEntry] = []


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What is to be run."""

    name: str
    common: Common
    data: Mapping[str, DataEntry]
    methods: tuple[MethodEntry, ...]
    where: Callable[..., str]  # file and line of a table, such as that of ("method", 0)

    @classmethod
    def read(cls, name: str | Path) -> Grid:
        """Read a grid by its name (`bilex benchmark grids` lists those that are ready) or its TOML file."""
        from bilex_bench.grid_file import read_grid

        return read_grid(name)

    def choosing(
        self,
        *,
        data: Sequence[str] = (),
        vectors: str | None = None,
        lm: str | None = None,
        pairs: Sequence[str] = (),
        seeds: Sequence[str] = (),
        limit: int | None = None,
        device: str | None = None,
    ) -> Grid:
        """This grid with other choices, as given on a command line.

        `data` has "NAME=FOLDER" texts, or one "FOLDER" for a grid with one data set. `lm` takes the place of
        every language model of the grid, "none" for none; labels with "{lm}" follow. Methods that are
        restricted to other pairs than `pairs` fall away.
        """
        given = {"pairs": tuple(pairs), "seeds": tuple(seeds), "limit": limit, "device": device}
        chosen = {name: value for name, value in given.items() if value}
        own: dict[str, str | None] = {name: None for name in ("pairs", "seeds") if name in chosen}
        own |= {"vectors": vectors} if vectors else {}
        return replace(
            self,
            common=self.common.model_copy(update=chosen),
            data={name: entry.model_copy(update=own) for name, entry in self._placed(data).items()},
            methods=tuple(_with_lm(method, lm) for method in self.methods) if lm else self.methods,
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
        """The data sets, opened; no vectors are read."""
        return {name: self._opened(name, entry) for name, entry in self.data.items()}

    def _opened(self, name: str, entry: DataEntry) -> DataFolder:
        if entry.path is not None:
            return DataFolder.open(Path(entry.path), name, vectors=entry.vectors)
        if name == SAMPLE:
            return DataFolder.sample()
        raise BilexError(
            f"grid '{self.name}': does not say where the data '{name}' lies; give --data "
            f"{name}=FOLDER, or see 'bilex data get'."
        )

    def setups(self, datasets: Mapping[str, DataFolder]) -> list[Setup]:
        """Every setup of the grid on the data sets that `open_data` gave, pair by pair.

        Two setups may have one `key` and two labels: one experiment under two names. It needs to be run once;
        `ResultsStore.name` remembers both names.
        """
        found: dict[tuple[str, str, str, str], Setup] = {}
        for setup, _, where in self._rows(datasets):
            name = (setup.dataset, setup.pair, setup.seeds, setup.label)
            if name in found and found[name].key != setup.key:
                raise BilexError(
                    f"{where}: label '{setup.label}' stands for two different setups on {setup.pair} with "
                    f"{setup.seeds} seeds; give one of them another label."
                )
            found.setdefault(name, setup)
        if not found:
            raise BilexError(
                f"grid '{self.name}': has no setup left; its methods are restricted to other pairs or seeds."
            )
        return list(found.values())

    def sampled(self, datasets: Mapping[str, DataFolder]) -> frozenset[str]:
        """The keys of the setups whose vectors are to be kept for pictures."""
        return frozenset(setup.key for setup, samples, _ in self._rows(datasets) if samples)

    def _rows(self, datasets: Mapping[str, DataFolder]) -> Iterator[tuple[Setup, bool, str]]:
        """Each setup, whether its vectors are kept, and where it is written."""
        self._check_pairs(datasets)
        for name, entry in self.data.items():
            pairs = self._pairs_of(entry, datasets[name])
            shown = [pair for pair in pairs if pair in (self.common.sample_pairs or ())] or pairs[:1]
            for pair in pairs:
                for seeds in entry.seeds or self.common.seeds or ():
                    for number, method in enumerate(self.methods):
                        if method.allows(pair, seeds):
                            base = self._base(name, pair, seeds, number)
                            yield base, method.samples and pair in shown, self.where("method", number)
                            yield from self._with_models(base, number, pair in shown)

    def _base(self, dataset: str, pair: str, seeds: str, number: int) -> Setup:
        method = self.methods[number]
        if seeds == NO_SEEDS and get_method(method.name).needs_seeds:
            raise BilexError(
                f"{self.where('method', number)}: method '{method.name}' cannot do without seeds, and the "
                f"grid has seeds \"{NO_SEEDS}\"; restrict the method with 'seeds'."
            )
        return Setup(
            dataset=dataset,
            pair=pair,
            seeds=seeds,
            method=method.name,
            settings=dict(method.settings),
            limit=self.common.limit,
            seed=self.common.seed,
            label=method.label or method.name,
        )

    def _with_models(self, base: Setup, number: int, shown: bool) -> Iterator[tuple[Setup, bool, str]]:
        """The setups of the language models on top of a method's."""
        for place, lm in enumerate(self.methods[number].lm):
            for mixing in lm.mixing if lm.allows(base.pair, base.seeds) else ():
                label = lm.label_at(base.label, mixing)
                setup = replace(
                    base, lm=lm.name, tune=lm.tune, tuning=dict(lm.tuning), mixing=mixing, label=label
                )
                yield setup, lm.samples and shown, self.where("method", number, "lm", place)

    def _pairs_of(self, entry: DataEntry, folder: DataFolder) -> list[str]:
        """The grid's pairs that a data set has."""
        wanted = entry.pairs or self.common.pairs
        if wanted == (ALL,):
            return list(folder.dictionaries.pairs)
        return [pair for pair in wanted if _is_in(pair, folder.dictionaries.pairs)]

    def _check_pairs(self, datasets: Mapping[str, DataFolder]) -> None:
        """See that every pair named anywhere is in some data set."""
        there = [pair for folder in datasets.values() for pair in folder.dictionaries.pairs]
        places = [(self.common.pairs, f"grid '{self.name}'")]
        places += [(entry.pairs or (), f"grid '{self.name}'") for entry in self.data.values()]
        for number, method in enumerate(self.methods):
            places.append((method.pairs or (), self.where("method", number)))
            places += [
                (lm.pairs or (), self.where("method", number, "lm", n)) for n, lm in enumerate(method.lm)
            ]
        for pairs, where in places:
            for pair in pairs:
                if pair != ALL and not _is_in(pair, there):
                    names = ", ".join(datasets)
                    raise BilexError(
                        f"{where}: pair '{pair}' has no dictionaries in {names}.{nearest_name(pair, there)}"
                    )


def _is_in(pair: str, pairs: Collection[str]) -> bool:
    """Whether a pair is there in either direction: dictionaries are swapped if need be."""
    source, _, target = pair.partition("-")
    return pair in pairs or f"{target}-{source}" in pairs


def _with_lm(method: MethodEntry, lm: str) -> MethodEntry:
    models = [] if lm == NO_MODEL else [entry.model_copy(update={"name": lm}) for entry in method.lm]
    return method.model_copy(update={"lm": models})

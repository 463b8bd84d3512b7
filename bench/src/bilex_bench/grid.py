"""A grid: which methods, language models and λ are run on which pairs with which seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bilex.encoders.presets import DEFAULT_MIXING
from bilex.errors import BilexError, nearest_name
from bilex_bench.datasets import NO_SEEDS, DataFolder
from bilex_bench.setups import Mixing, Setup

ALL = "all"
SAMPLE = "sample"
NO_MODEL = "none"
_SHORT_NAMES = {
    "bert-base-multilingual-uncased": "mBERT",
    "xlm-mlm-100-1280": "XLM",
    "google/mt5-small": "mT5",
    "xlm-roberta-base": "XLM-R",
    "intfloat/multilingual-e5-small": "E5",
    "e5-small-q4": "E5",
}


@dataclass(frozen=True, kw_only=True)
class DataEntry:
    """A data set of a grid.

    Args:
        name: What it is called; it also chooses among several sets of dictionaries in the folder.
        path: The folder; None if it is told on the command line, or for the packaged sample.
        vectors: Where the vectors are, as in `DataFolder.open`; None for the usual places in the folder.
        pairs: Its pairs, "all" for all it has; None for those of the grid.
        seeds: Its seed dictionaries; None for those of the grid.
    """

    name: str
    path: Path | None = None
    vectors: str | None = None
    pairs: tuple[str, ...] | None = None
    seeds: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Restriction:
    """Where an entry of a grid applies.

    Args:
        pairs: Only these pairs; None for all of the grid.
        seeds: Only these seed dictionaries; None for all of the grid.
    """

    pairs: tuple[str, ...] | None = None
    seeds: tuple[str, ...] | None = None

    def allows(self, pair: str, seeds: str) -> bool:
        """Whether it lets a pair and a seed dictionary pass."""
        return (self.pairs is None or pair in self.pairs) and (self.seeds is None or seeds in self.seeds)


@dataclass(frozen=True, kw_only=True)
class LmEntry:
    """A language model on top of a method.

    Args:
        name: The model.
        label: Its name in tables; "{lm}" stands for the model's short name.
        tune: Whether it is tuned.
        tuning: Settings of tuning that differ from the model's own; "preset" names a lighter preset.
        mixing: Each λ.
        only: Where it applies.
        samples: Whether vectors are kept for pictures.
        where: File and line.
    """

    name: str
    label: str
    tune: bool = True
    tuning: Mapping[str, Any] = field(default_factory=dict)
    mixing: tuple[Mixing, ...] = (DEFAULT_MIXING,)
    only: Restriction = field(default_factory=Restriction)
    samples: bool = False
    where: str = ""

    def label_at(self, mixing: Mixing) -> str:
        """The label of one λ, which is told where there are several."""
        label = self.label.replace("{lm}", short_name(self.name))
        if len(self.mixing) == 1:
            return label
        return f"{label}, λ {mixing}" if mixing == "auto" else f"{label}, λ = {mixing:g}"


@dataclass(frozen=True, kw_only=True)
class MethodEntry:
    """A method of a grid, with the language models on top of it.

    Args:
        name: The aligner.
        label: Its name in tables.
        settings: Its settings that differ from the defaults.
        needs_seeds: Whether it cannot do without seeds.
        only: Where it applies.
        samples: Whether vectors are kept for pictures.
        lms: Language models on top of it.
        where: File and line.
    """

    name: str
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    needs_seeds: bool = True
    only: Restriction = field(default_factory=Restriction)
    samples: bool = False
    lms: tuple[LmEntry, ...] = ()
    where: str = ""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What is to be run.

    Args:
        name: The grid's name.
        about: What it is for, in one sentence.
        data: Its data sets.
        methods: Its methods.
        pairs: Its pairs; "all" for all that a data set has dictionaries for.
        seeds: Its seed dictionaries, "0" for none.
        limit: How many words of each language are read; None for all.
        seed: For methods with chance in them.
        device: "auto", "cpu" or "cuda".
        sample_pairs: The pairs whose vectors are kept for pictures; empty for the first pair of a data set.
    """

    name: str
    about: str
    data: tuple[DataEntry, ...]
    methods: tuple[MethodEntry, ...]
    pairs: tuple[str, ...] = (ALL,)
    seeds: tuple[str, ...] = ()
    limit: int | None = 200_000
    seed: int = 0
    device: str = "auto"
    sample_pairs: tuple[str, ...] = ()

    @classmethod
    def read(cls, name: str | Path) -> Grid:
        """Read a grid.

        Args:
            name: The name of a ready grid (`bilex benchmark grids` lists them), or a TOML file.

        Raises:
            BilexError: There is no such grid, or something in it is wrong; file, line and nearest valid
                name are told.
        """
        from bilex_bench.grid_reading import read_grid

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

        Args:
            data: "NAME=FOLDER" texts, or one "FOLDER" for a grid with one data set.
            vectors: Where the vectors of all data sets are, as in `DataFolder.open`.
            lm: A language model in the place of every one of the grid, "none" for none; labels with "{lm}"
                follow.
            pairs: Pairs in the place of the grid's; methods restricted to other pairs fall away.
            seeds: Seed dictionaries in the place of the grid's.
            limit: Words of each language.
            device: Where to compute.

        Raises:
            BilexError: A data set is not one of the grid's.
        """
        entries = self._placed(data)
        if vectors:
            entries = [replace(entry, vectors=vectors) for entry in entries]
        if pairs:
            entries = [replace(entry, pairs=None) for entry in entries]
        if seeds:
            entries = [replace(entry, seeds=None) for entry in entries]
        return replace(
            self,
            data=tuple(entries),
            methods=tuple(_with_lm(method, lm) for method in self.methods) if lm else self.methods,
            pairs=tuple(pairs) or self.pairs,
            seeds=tuple(seeds) or self.seeds,
            limit=limit or self.limit,
            device=device or self.device,
        )

    def open_data(self) -> dict[str, DataFolder]:
        """The data sets, opened; no vectors are read.

        Raises:
            BilexError: A folder is not told or not there.
        """
        return {entry.name: self._opened(entry) for entry in self.data}

    def setups(self, datasets: Mapping[str, DataFolder]) -> list[Setup]:
        """Every setup of the grid, pair by pair.

        Two setups may have one `key` and two labels: one experiment under two names. It needs to be run once;
        `ResultsStore.name` remembers both names.

        Args:
            datasets: What `open_data` gave.

        Raises:
            BilexError: A pair is in no data set, two different setups have one label, or there is no setup.
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

    def _placed(self, data: Sequence[str]) -> list[DataEntry]:
        """The data entries with the folders given."""
        entries = {entry.name: entry for entry in self.data}
        for text in data:
            name, equals, folder = text.partition("=")
            if len(entries) == 1 and name not in entries and (not equals or Path(text).is_dir()):
                name, folder = next(iter(entries)), text
            if name not in entries:
                raise BilexError(
                    f"--data {text}: write it as NAME=FOLDER; grid '{self.name}' has the data "
                    f"{', '.join(entries)}.{nearest_name(name, entries) if equals else ''}"
                )
            entries[name] = replace(entries[name], path=Path(folder).expanduser(), vectors=None)
        return list(entries.values())

    def _opened(self, entry: DataEntry) -> DataFolder:
        if entry.path is not None:
            return DataFolder.open(entry.path, entry.name, vectors=entry.vectors)
        if entry.name == SAMPLE:
            return DataFolder.sample()
        raise BilexError(
            f"grid '{self.name}': does not say where the data '{entry.name}' lies; give --data "
            f"{entry.name}=FOLDER, or see 'bilex data get'."
        )

    def _rows(self, datasets: Mapping[str, DataFolder]) -> Iterator[tuple[Setup, bool, str]]:
        """Each setup, whether its vectors are kept, and where it is written."""
        self._check_pairs(datasets)
        for entry in self.data:
            folder = datasets[entry.name]
            pairs = self._pairs_of(entry, folder)
            shown = [pair for pair in pairs if pair in self.sample_pairs] or pairs[:1]
            for pair in pairs:
                for seeds in entry.seeds or self.seeds:
                    for method in self.methods:
                        if method.only.allows(pair, seeds):
                            base = self._base(entry.name, pair, seeds, method)
                            yield base, method.samples and pair in shown, method.where
                            yield from _with_models(base, method, pair in shown)

    def _base(self, dataset: str, pair: str, seeds: str, method: MethodEntry) -> Setup:
        if seeds == NO_SEEDS and method.needs_seeds:
            raise BilexError(
                f"{method.where}: method '{method.name}' cannot do without seeds, and the grid has seeds "
                f"\"{NO_SEEDS}\"; restrict the method with 'seeds'."
            )
        return Setup(
            dataset=dataset,
            pair=pair,
            seeds=seeds,
            method=method.name,
            settings=dict(method.settings),
            limit=self.limit,
            seed=self.seed,
            label=method.label,
        )

    def _pairs_of(self, entry: DataEntry, folder: DataFolder) -> list[str]:
        """The grid's pairs that a data set has."""
        wanted = entry.pairs or self.pairs
        if wanted == (ALL,):
            return list(folder.pairs())
        return [pair for pair in wanted if _is_in(pair, folder.pairs())]

    def _check_pairs(self, datasets: Mapping[str, DataFolder]) -> None:
        """See that every pair named anywhere is in some data set."""
        there = [pair for folder in datasets.values() for pair in folder.pairs()]
        places = [(self.pairs, f"grid '{self.name}'")]
        places += [(entry.pairs or (), f"grid '{self.name}'") for entry in self.data]
        for method in self.methods:
            places.append((method.only.pairs or (), method.where))
            places += [(lm.only.pairs or (), lm.where) for lm in method.lms]
        for pairs, where in places:
            for pair in pairs:
                if pair != ALL and not _is_in(pair, there):
                    names = ", ".join(datasets)
                    raise BilexError(
                        f"{where}: pair '{pair}' has no dictionaries in {names}.{nearest_name(pair, there)}"
                    )


def short_name(lm: str) -> str:
    """The name of a language model in tables."""
    return _SHORT_NAMES.get(lm) or lm.rstrip("/").rpartition("/")[2]


def _is_in(pair: str, pairs: Sequence[str]) -> bool:
    """Whether a pair is there in either direction: dictionaries are swapped if need be."""
    source, _, target = pair.partition("-")
    return pair in pairs or f"{target}-{source}" in pairs


def _with_lm(method: MethodEntry, lm: str) -> MethodEntry:
    return replace(
        method, lms=() if lm == NO_MODEL else tuple(replace(entry, name=lm) for entry in method.lms)
    )


def _with_models(base: Setup, method: MethodEntry, shown: bool) -> Iterator[tuple[Setup, bool, str]]:
    """The setups of the language models on top of a method's."""
    for lm in method.lms:
        if not lm.only.allows(base.pair, base.seeds):
            continue
        for mixing in lm.mixing:
            setup = replace(
                base,
                lm=lm.name,
                tune=lm.tune,
                tuning=dict(lm.tuning),
                mixing=mixing,
                label=lm.label_at(mixing),
            )
            yield setup, lm.samples and shown, lm.where

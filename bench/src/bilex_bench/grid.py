"""A grid: which methods, language models and λ are run on which pairs with which seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bilex.aligners import get_method
from bilex.core.errors import BilexError, nearest_name
from bilex_bench.datasets import NO_SEEDS, DataFolder
from bilex_bench.grid_schema import ALL, Common, DataEntry, MethodEntry
from bilex_bench.setups import Setup

SAMPLE = "sample"
NO_MODEL = "none"


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What is to be run.

    Args:
        name: The grid's name.
        common: What holds for all of it.
        data: Its data sets by name.
        methods: Its methods.
        where: Gives file and line of a table, such as that of ("method", 0).
    """

    name: str
    common: Common
    data: Mapping[str, DataEntry]
    methods: tuple[MethodEntry, ...]
    where: Callable[..., str]

    @classmethod
    def read(cls, name: str | Path) -> Grid:
        """Read a grid.

        Args:
            name: The name of a ready grid (`bilex benchmark grids` lists them), or a TOML file.

        Raises:
            BilexError: There is no such grid, or something in it is wrong; file, line and nearest valid
                name are given.
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

    def open_data(self) -> dict[str, DataFolder]:
        """The data sets, opened; no vectors are read.

        Raises:
            BilexError: A folder is not given or not there.
        """
        return {name: self._opened(name, entry) for name, entry in self.data.items()}

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

    def _opened(self, name: str, entry: DataEntry) -> DataFolder:
        if entry.path is not None:
            return DataFolder.open(Path(entry.path), name, vectors=entry.vectors)
        if name == SAMPLE:
            return DataFolder.sample()
        raise BilexError(
            f"grid '{self.name}': does not say where the data '{name}' lies; give --data "
            f"{name}=FOLDER, or see 'bilex data get'."
        )

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
                            base = self._base(name, pair, seeds, method, self.where("method", number))
                            yield base, method.samples and pair in shown, self.where("method", number)
                            yield from self._with_models(base, number, pair in shown)

    def _base(self, dataset: str, pair: str, seeds: str, method: MethodEntry, where: str) -> Setup:
        if seeds == NO_SEEDS and get_method(method.name).needs_seeds:
            raise BilexError(
                f"{where}: method '{method.name}' cannot do without seeds, and the grid has seeds "
                f"\"{NO_SEEDS}\"; restrict the method with 'seeds'."
            )
        return Setup(
            dataset=dataset,
            pair=pair,
            seeds=seeds,
            method=method.name,
            settings=dict(method.settings),
            limit=self.common.limit,
            seed=self.common.seed,
            label=method.title,
        )

    def _with_models(self, base: Setup, number: int, shown: bool) -> Iterator[tuple[Setup, bool, str]]:
        """The setups of the language models on top of a method's."""
        for place, lm in enumerate(self.methods[number].lm):
            for mixing in lm.mixing if lm.allows(base.pair, base.seeds) else ():
                label = lm.label_at(base.label, mixing)
                chosen: dict[str, Any] = {
                    "lm": lm.name,
                    "tune": lm.tune,
                    "tuning": dict(lm.tuning),
                    "mixing": mixing,
                }
                setup = replace(base, **chosen, label=label)
                yield setup, lm.samples and shown, self.where("method", number, "lm", place)

    def _pairs_of(self, entry: DataEntry, folder: DataFolder) -> list[str]:
        """The grid's pairs that a data set has."""
        wanted = entry.pairs or self.common.pairs
        if wanted == (ALL,):
            return list(folder.pairs())
        return [pair for pair in wanted if _is_in(pair, folder.pairs())]

    def _check_pairs(self, datasets: Mapping[str, DataFolder]) -> None:
        """See that every pair named anywhere is in some data set."""
        there = [pair for folder in datasets.values() for pair in folder.pairs()]
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


def _is_in(pair: str, pairs: Sequence[str]) -> bool:
    """Whether a pair is there in either direction: dictionaries are swapped if need be."""
    source, _, target = pair.partition("-")
    return pair in pairs or f"{target}-{source}" in pairs


def _with_lm(method: MethodEntry, lm: str) -> MethodEntry:
    models = [] if lm == NO_MODEL else [entry.model_copy(update={"name": lm}) for entry in method.lm]
    return method.model_copy(update={"lm": models})

"""A folder of dictionaries and word vectors, whatever its layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.data import sample_path
from bilex.lexicon import Lexicon
from bilex_bench.datasets.layouts import ALL, Dictionaries, PairFiles, find_dictionaries
from bilex_bench.datasets.vector_files import find_vectors, names_looked_for, vectors_of_pattern

NO_SEEDS = "0"
_VECTORS = "vectors"
_SAMPLE = "sample"


@dataclass(frozen=True)
class DataFolder:
    """What a benchmark reads: dictionaries of language pairs, and vectors of the languages.

    Attributes:
        name: What the data set is called in a grid.
        path: The folder.
        layout: How its dictionaries are named: "xling", "panlex", "muse" or "plain".
        dictionaries: The dictionaries found.
        vectors: The vector files found, by language.
        vectors_sought: Where they were looked for, for messages: a pattern, or places in words.

    Examples:
        >>> folder = DataFolder.open("data", "xling")  # doctest: +SKIP
        >>> folder.seed_names("en-fi")  # doctest: +SKIP
        ('1k', '5k')
    """

    name: str
    path: Path
    dictionaries: Dictionaries
    vectors: dict[str, Path]
    vectors_sought: str

    @property
    def layout(self) -> str:
        """How the dictionaries are named: "xling", "panlex", "muse" or "plain"."""
        return self.dictionaries.layout

    @classmethod
    def open(
        cls, path: str | Path, name: str | None = None, *, vectors: str | Path | None = None
    ) -> DataFolder:
        """Look what there is in a folder; no file is read."""
        path = Path(path)
        if not path.is_dir():
            raise BilexError(f"{path}: there is no such folder; check the name, or see 'bilex data get'.")
        chosen = _chosen(path, find_dictionaries(path), name)
        return cls._of(path, chosen, name, vectors)

    @classmethod
    def open_all(cls, path: str | Path, *, vectors: str | Path | None = None) -> list[DataFolder]:
        """Every set of dictionaries in a folder, each with the vectors; none where there is none."""
        path = Path(path)
        if not path.is_dir():
            raise BilexError(f"{path}: there is no such folder; check the name.")
        return [cls._of(path, part, None, vectors) for part in find_dictionaries(path)]

    @classmethod
    def sample(cls) -> DataFolder:
        """The packaged English–Finnish sample: one pair, seeds "all"."""
        path = sample_path()
        files = PairFiles({ALL: path / "seeds.tsv"}, [path / "test.tsv"])
        return cls(_SAMPLE, path, Dictionaries(path, "plain", {"en-fi": files}), find_vectors(path), "")

    @classmethod
    def _of(
        cls, path: Path, dictionaries: Dictionaries, name: str | None, chosen: str | Path | None
    ) -> DataFolder:
        """A folder with one of its sets of dictionaries and the vectors that go with it."""
        if chosen is None:
            places = [path, path / _VECTORS, dictionaries.path, dictionaries.path / _VECTORS]
        else:
            places = [Path(chosen), Path(chosen) / _VECTORS]
        by_pattern = chosen is not None and not places[0].is_dir()
        vectors = vectors_of_pattern(str(chosen)) if by_pattern else find_vectors(*places)
        sought = str(chosen) if by_pattern else f"in {places[0]} and {places[1]}"
        return cls(name or dictionaries.path.resolve().name, path, dictionaries, vectors, sought)

    def languages(self) -> tuple[str, ...]:
        """The languages with vectors."""
        return tuple(self.vectors)

    def pairs(self) -> tuple[str, ...]:
        """The pairs with dictionaries, in the direction they are stored."""
        return tuple(self.dictionaries.pairs)

    def seed_names(self, pair: str) -> tuple[str, ...]:
        """The names of a pair's seed dictionaries, the smallest first."""
        return tuple(self._files(pair)[0].seeds)

    def vectors_path(self, language: str) -> Path:
        """The vector file, or folder, of a language."""
        found = self.vectors.get(language)
        if found is None:
            sought = self.vectors_sought
            looked = sought.format(language) if "{}" in sought else f"{names_looked_for(language)} {sought}"
            raise BilexError(f"{self.path}: there are no vectors for '{language}'; looked for {looked}.")
        return found

    def seeds(self, pair: str, name: str) -> Lexicon:
        """A seed dictionary, lower-cased; empty for the name "0"."""
        files, swapped = self._files(pair)
        if name == NO_SEEDS:
            return Lexicon([], "no seeds")
        return _read(self._seeds_path(pair, files, name), swapped)

    def test(self, pair: str) -> Lexicon:
        """The test dictionary of a pair, lower-cased; swapped if stored in the other direction."""
        files, swapped = self._files(pair)
        return _read(self._test_path(pair, files), swapped)

    def check(self, pair: str, seeds: str) -> None:
        """See that all that a setup needs is there, without reading it."""
        files, _ = self._files(pair)
        if seeds != NO_SEEDS:
            self._seeds_path(pair, files, seeds)
        self._test_path(pair, files)
        for language in pair.split("-"):
            self.vectors_path(language)

    def _files(self, pair: str) -> tuple[PairFiles, bool]:
        """The files of a pair, and whether they are stored in the other direction."""
        stored = self.dictionaries.pairs
        source, _, target = pair.partition("-")
        if pair in stored:
            return stored[pair], False
        if f"{target}-{source}" in stored:
            return stored[f"{target}-{source}"], True
        raise BilexError(
            f"{self.dictionaries.path}: has no dictionaries for '{pair}'; it has {_listed(tuple(stored))}."
        )

    def _seeds_path(self, pair: str, files: PairFiles, name: str) -> Path:
        if name not in files.seeds:
            raise BilexError(
                f"{self.dictionaries.path}: has no seed dictionary '{name}' for '{pair}'; "
                f"it has {_listed(tuple(files.seeds)) or 'none'}."
            )
        return files.seeds[name]

    def _test_path(self, pair: str, files: PairFiles) -> Path:
        if len(files.tests) != 1:
            what = f"several ({_listed(tuple(map(str, files.tests)))})" if files.tests else "none"
            raise BilexError(
                f"{self.dictionaries.path}: one test dictionary is needed for '{pair}', there is {what}; "
                "docs/reference/data.md says how such a file is named."
            )
        return files.tests[0]


def _read(path: Path, swapped: bool) -> Lexicon:
    lexicon = Lexicon.load(path)
    return lexicon.swapped() if swapped else lexicon


def _chosen(path: Path, found: list[Dictionaries], name: str | None) -> Dictionaries:
    if not found:
        raise BilexError(
            f"{path}: has no dictionaries that bilex knows by their names, such as en-fi.train.5k.tsv and "
            "en-fi.test.tsv; see docs/reference/data.md."
        )
    named = [part for part in found if name in (part.path.name, part.layout)]
    if len(found) > 1 and len(named) != 1:
        listed = _listed(tuple(str(part.path.relative_to(path)) for part in found))
        raise BilexError(
            f"{path}: has several sets of dictionaries ({listed}); call the data set by one of these names, "
            "or give the folder of one."
        )
    return named[0] if named else found[0]


def _listed(names: tuple[str, ...], shown: int = 12) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more

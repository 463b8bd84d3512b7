"""Which files of a data set exist, how much of them can be used, and what is suspicious."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.core.text import listed
from bilex.lexicon import Lexicon
from bilex_bench.datasets.folder import DataFolder, load_vectors

TEST = "test"
_LOW_COVERAGE = 0.5
_PAIRS_SHOWN = 3


@dataclass(frozen=True)
class VectorsCheck:
    """The vectors of a language: the file, how many words were read, their dimension."""

    path: str
    words: int
    dim: int


@dataclass(frozen=True)
class DictionaryCheck:
    """One dictionary."""

    path: str
    pairs: int  # including repeated ones
    repeated: int  # pairs that occur again, lower-cased
    covered: int | None  # those with both words in the vectors; None without vectors of both languages
    leaked: int | None = None  # of a seed dictionary: how many distinct pairs of the test are in it


@dataclass
class PairCheck:
    """The dictionaries of a pair by name, the test under "test"."""

    pair: str
    dictionaries: dict[str, DictionaryCheck] = field(default_factory=dict)


@dataclass
class FolderCheck:
    """Everything about a data set."""

    name: str
    path: str  # the folder of its dictionaries
    layout: str  # how they are named
    vectors: dict[str, VectorsCheck]  # by language
    pairs: list[PairCheck]
    warnings: list[str]  # one sentence each

    @property
    def usable(self) -> tuple[str, ...]:
        """The pairs that a benchmark can run on: some pairs of the test dictionary are covered."""
        return tuple(p.pair for p in self.pairs if TEST in p.dictionaries and p.dictionaries[TEST].covered)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON."""
        return asdict(self) | {"usable": self.usable}


def check_folder(folder: DataFolder, limit: int | None = None, progress: Progress = SILENT) -> FolderCheck:
    """Read all dictionaries of a data set and the vocabularies of its languages.

    A file that cannot be read becomes a warning; the others are checked all the same.
    """
    warnings: list[str] = []
    listed = folder.dictionaries.pairs
    languages = sorted({language for pair in listed for language in pair.split("-")})
    vectors: dict[str, VectorsCheck] = {}
    words: dict[str, dict[str, int]] = {}  # without the matrices, which would fill the memory
    for language in (language for language in languages if language in folder.vectors):
        try:
            loaded = load_vectors(folder, language, limit, progress=progress)
        except BilexError as error:
            warnings.append(str(error))
            continue
        warnings.extend(loaded.report.sentences() if loaded.report else [])
        vectors[language] = VectorsCheck(str(folder.vectors_path(language)), len(loaded), loaded.dim)
        words[language] = loaded.key_to_index
    pairs = []
    with progress.task("dictionaries", len(listed)) as task:
        for pair in listed:
            pairs.append(_check_pair(folder, pair, words, warnings))
            task.advance()
    missing = [language for language in languages if language not in vectors]
    if missing:
        without = sum(bool(set(pair.split("-")) & set(missing)) for pair in listed)
        warnings.append(
            f"no vectors for {', '.join(missing)}: {without} of {len(listed)} pairs cannot be run."
        )
    warnings.extend(_leaks(pairs))
    where = folder.dictionaries
    return FolderCheck(folder.name, str(where.path), where.layout, vectors, pairs, warnings)


def _check_pair(
    folder: DataFolder, pair: str, vocabularies: Mapping[str, Mapping[str, int]], warnings: list[str]
) -> PairCheck:
    found = PairCheck(pair)
    files = folder.dictionaries.pairs[pair]
    source, target = (vocabularies.get(language) for language in pair.split("-"))
    lexicons: dict[str, tuple[Lexicon, Path]] = {}
    for name in (TEST, *files.seeds):
        try:
            if name == TEST:
                lexicons[TEST] = folder.test(pair), files.tests[0]
            else:
                lexicons[name] = folder.seeds(pair, name), files.seeds[name]
        except BilexError as error:
            warnings.append(str(error))
    for name, (lexicon, path) in lexicons.items():
        covered = leaked = None
        if source is not None and target is not None:
            coverage = lexicon.coverage(source, target)
            covered = coverage.covered
            if coverage.fraction < _LOW_COVERAGE:
                warnings.append(f"{path}: only {coverage.sentence()}.{coverage.advice()}")
        warnings.extend(lexicon.report.sentences() if lexicon.report else [])
        if TEST in lexicons and name != TEST:
            leaked = len(lexicons[TEST][0].leaks(lexicon).pairs)
        repeated = len(lexicon) - len(set(lexicon.pairs))
        found.dictionaries[name] = DictionaryCheck(str(path), len(lexicon), repeated, covered, leaked)
    return found


def _leaks(pairs: list[PairCheck]) -> list[str]:
    """One sentence for each name of seed dictionaries with leaks."""
    sentences = []
    for name in sorted({name for check in pairs for name in check.dictionaries} - {TEST}):
        checks = {check.pair: check.dictionaries.get(name) for check in pairs}
        counts = {pair: check.leaked for pair, check in checks.items() if check and check.leaked}
        if counts:
            shown = listed(counts, _PAIRS_SHOWN)
            sentences.append(
                f"seeds {name}: test pairs are in them too, {min(counts.values())} to "
                f"{max(counts.values())} in {len(counts)} of {len(pairs)} pairs ({shown}); use the "
                "leak-free scores for these."
            )
    return sentences

"""What of a data set is there, how much of it can be used, and what to be wary of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bilex.core.errors import BilexError
from bilex.core.progress import SILENT, Progress
from bilex.lexicon import Lexicon
from bilex_bench.datasets.folder import DataFolder
from bilex_bench.datasets.loading import load_vectors

TEST = "test"
_FEW = 0.5
_LEAKS_SHOWN = 3


@dataclass(frozen=True)
class VectorsCheck:
    """The vectors of a language: the file, how many words were read, how many numbers each has."""

    path: str
    words: int
    dim: int


@dataclass(frozen=True)
class DictionaryCheck:
    """One dictionary."""

    path: str  # its file
    pairs: int  # its pairs, repeats counted
    repeated: int  # how many of them stand there again, lower-cased
    covered: int | None  # those with both words in the vectors; None without vectors of both languages
    leaked: int | None = None  # of a seed dictionary: how many distinct pairs of the test stand in it too


@dataclass
class PairCheck:
    """The dictionaries of a pair by name, the test under "test"."""

    pair: str
    dictionaries: dict[str, DictionaryCheck] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        """Whether there is something to test on: a test dictionary and vectors that cover some of it."""
        test = self.dictionaries.get(TEST)
        return bool(test and test.covered)


@dataclass
class FolderCheck:
    """All that was found out about a data set."""

    name: str  # the name of the data set
    path: str  # the folder of its dictionaries
    layout: str  # how they are named
    vectors: dict[str, VectorsCheck]  # the vectors by language
    pairs: list[PairCheck]  # the pairs
    warnings: list[str] = field(default_factory=list)  # what to be wary of, one sentence each

    @property
    def usable(self) -> tuple[str, ...]:
        """The pairs that a benchmark can run on."""
        return tuple(check.pair for check in self.pairs if check.usable)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON."""
        return asdict(self) | {"usable": self.usable}


def check_folder(folder: DataFolder, limit: int | None = None, progress: Progress = SILENT) -> FolderCheck:
    """Read all dictionaries of a data set and the vocabularies of its languages.

    A file that cannot be read is reported among the warnings; the others are checked all the same.
    """
    warnings: list[str] = []
    languages = sorted({language for pair in folder.pairs() for language in pair.split("-")})
    vectors, vocabularies = _vocabularies(folder, languages, limit, warnings, progress)
    with progress.task("dictionaries", len(folder.pairs())) as task:
        pairs = []
        for pair in folder.pairs():
            pairs.append(_check_pair(folder, pair, vocabularies, warnings))
            task.advance()
    found = FolderCheck(folder.name, str(folder.dictionaries.path), folder.layout, vectors, pairs, warnings)
    warnings.extend(_missing_vectors(found, languages))
    warnings.extend(_leaks(found))
    return found


def _vocabularies(
    folder: DataFolder, languages: list[str], limit: int | None, warnings: list[str], progress: Progress
) -> tuple[dict[str, VectorsCheck], dict[str, dict[str, int]]]:
    """What there is of vectors, and the words alone: the matrices of all languages would fill the memory."""
    checks: dict[str, VectorsCheck] = {}
    words: dict[str, dict[str, int]] = {}
    for language in (language for language in languages if language in folder.vectors):
        try:
            vectors = load_vectors(folder, language, limit, progress=progress)
        except BilexError as error:
            warnings.append(str(error))
            continue
        warnings.extend(vectors.report.sentences() if vectors.report else [])
        checks[language] = VectorsCheck(str(folder.vectors_path(language)), len(vectors), vectors.dim)
        words[language] = vectors.key_to_index
    return checks, words


def _check_pair(
    folder: DataFolder, pair: str, vocabularies: Mapping[str, Mapping[str, int]], warnings: list[str]
) -> PairCheck:
    found = PairCheck(pair)
    files = folder.dictionaries.pairs[pair]
    source, target = (vocabularies.get(language) for language in pair.split("-"))
    test: Lexicon | None = None
    try:
        test = folder.test(pair)
    except BilexError as error:
        warnings.append(str(error))
    lexicons: dict[str, tuple[Path, Lexicon]] = {TEST: (files.tests[0], test)} if test else {}
    for name, path in files.seeds.items():
        try:
            lexicons[name] = path, folder.seeds(pair, name)
        except BilexError as error:
            warnings.append(str(error))
    for name, (path, lexicon) in lexicons.items():
        covered = None
        if source is not None and target is not None:
            coverage = lexicon.coverage(source, target)
            covered = coverage.covered
            if coverage.fraction < _FEW:
                warnings.append(f"{path}: only {coverage.sentence()}.{coverage.advice()}")
        if lexicon.report and (lexicon.report.broken or lexicon.report.extra_columns):
            warnings.append(lexicon.report.sentence())
        leaked = len(test.leaks(lexicon).pairs) if test and name != TEST else None
        repeated = len(lexicon) - len(set(lexicon.pairs))
        found.dictionaries[name] = DictionaryCheck(str(path), len(lexicon), repeated, covered, leaked)
    return found


def _missing_vectors(found: FolderCheck, languages: list[str]) -> list[str]:
    missing = [language for language in languages if language not in found.vectors]
    without = [check.pair for check in found.pairs if set(check.pair.split("-")) & set(missing)]
    if not missing:
        return []
    return [f"no vectors for {', '.join(missing)}: {len(without)} of {len(found.pairs)} pairs cannot be run."]


def _leaks(found: FolderCheck) -> list[str]:
    """One sentence for each seed dictionary's name."""
    sentences = []
    names = {name for check in found.pairs for name in check.dictionaries}
    for name in sorted(names - {TEST}):
        counts = {
            check.pair: leaked
            for check in found.pairs
            if name in check.dictionaries and (leaked := check.dictionaries[name].leaked)
        }
        if counts:
            fewest, most = min(counts.values()), max(counts.values())
            shown = ", ".join(list(counts)[:_LEAKS_SHOWN]) + (", ..." if len(counts) > _LEAKS_SHOWN else "")
            sentences.append(
                f"seeds {name}: test pairs stand in them too, {fewest} to {most} in {len(counts)} of "
                f"{len(found.pairs)} pairs ({shown}); use the leak-free scores for these."
            )
    return sentences

"""Training fastText vectors from raw text: settings, completed by the size of the corpus, and the run."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file, check_not_an_input, check_writable, temporary_path
from bilex.core.machine import available_memory
from bilex.core.progress import SILENT, Progress
from bilex.corpus.preparing import Preparation, Prepared, prepare
from bilex.vectors import WordVectors
from bilex.vectors.formats import files_written, format_of_name

Architecture = Literal["skipgram", "cbow"]

_PROGRESS = re.compile(r"Progress:\s+([\d.]+)%.*?avg\.loss:\s+([\d.]+)")
_LONGEST_MESSAGE = 2000
# What is left open, for fewer tokens than the number before it.
_BY_SIZE: tuple[tuple[float, dict[str, int]], ...] = (
    (500_000, {"dim": 100, "epochs": 20, "min_count": 2, "buckets": 50_000}),
    (5_000_000, {"dim": 100, "epochs": 8, "min_count": 2, "buckets": 100_000}),
    (50_000_000, {"dim": 200, "epochs": 5, "min_count": 3, "buckets": 500_000}),
    (500_000_000, {"dim": 300, "epochs": 5, "min_count": 5, "buckets": 1_000_000}),
    (math.inf, {"dim": 300, "epochs": 5, "min_count": 10, "buckets": 2_000_000}),
)
# fastText goes through a window word by word, and keeps its numbers in 32 bits.
_MOST = {
    "dim": 4096,
    "epochs": 10_000,
    "min_count": 2**31 - 1,
    "buckets": 2**31 - 1,
    "window": 1000,
    "negatives": 1000,
    "threads": 1024,
    "random_seed": 2**31 - 1,
}
_LONGEST_NGRAM = 100
_FASTTEXT_NAMES = {
    "dim": "dim",
    "epochs": "epoch",
    "min_count": "minCount",
    "window": "ws",
    "negatives": "neg",
    "learning_rate": "lr",
    "subsampling": "t",
    "threads": "thread",
    "random_seed": "seed",
}


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of fastText; what is None depends on the size of the corpus (docs/guide/vectors.md).

    Args:
        architecture: "skipgram" (a word predicts its neighbours) or "cbow" (they predict it).
        dim: The dimension of the vectors.
        epochs: How often the corpus is read.
        min_count: Words that occur fewer times in the corpus get no vector.
        buckets: How many rows character n-grams share.
        limit: The greatest number of words that get vectors, the most frequent ones.
        window: How many neighbours to each side count at the most.
        ngrams: The shortest and the longest character n-gram; (0, 0) for none.
        negatives: How many random words a neighbour is distinguished from.
        learning_rate: The first learning rate, which falls to 0.
        subsampling: Words more frequent than this share of the tokens are left out at random.
        threads: How many threads train; with one the result is reproducible.
        random_seed: The seed of all random numbers.
    """

    architecture: Architecture = "skipgram"
    dim: int | None = None
    epochs: int | None = None
    min_count: int | None = None
    buckets: int | None = None
    limit: int = 200_000
    window: int = 5
    ngrams: tuple[int, int] = (3, 6)
    negatives: int = 5
    learning_rate: float = 0.05
    subsampling: float = 1e-4
    threads: int = 1
    random_seed: int = 0

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            value = getattr(self, name)
            if value is not None and not 0 <= value <= most:
                raise BilexError(f"{name} is {value}; give a whole number up to {most:,}.")
        shortest, longest = self.ngrams
        if not (0 <= shortest <= longest <= _LONGEST_NGRAM and (shortest > 0) == (longest > 0)):
            raise BilexError(
                f"character n-grams of {shortest} to {longest} letters make no sense; give for example 3-6."
            )

    def for_size(self, tokens: int) -> TrainingSettings:
        """These settings, completed for a corpus with a number of tokens."""
        chosen = next(values for most, values in _BY_SIZE if tokens < most)
        left_open = {name: value for name, value in chosen.items() if getattr(self, name) is None}
        return replace(self, **left_open)  # type: ignore[arg-type]

    def arguments(self, vocabulary: int) -> dict[str, Any]:
        """Complete settings by fastText's names; more than 20 n-gram rows per word are of no use."""
        shortest, longest = self.ngrams
        buckets = min(self.buckets or 0, max(1000, 20 * vocabulary)) if longest else 0
        arguments = {theirs: getattr(self, ours) for ours, theirs in _FASTTEXT_NAMES.items()}
        return arguments | {"minn": shortest, "maxn": longest, "bucket": buckets}


@dataclass(frozen=True)
class TrainingReport:
    """What vectors were trained on, and how.

    Attributes:
        corpora: The files.
        lines: Lines of text that were used.
        left_out: Lines that were not, by reason.
        tokens: Words of running text, phrases counted as one.
        distinct: Distinct words.
        vocabulary: Words that got a vector.
        phrases: How many of these are phrases.
        settings: The settings, completed for the size of the corpus.
        uncut: The share of characters that ICU would have cut into words, were it installed.
        prepare_seconds: The time for reading, tokenising and joining.
        train_seconds: The time for training.
    """

    corpora: tuple[str, ...]
    lines: int
    left_out: dict[str, int]
    tokens: int
    distinct: int
    vocabulary: int
    phrases: int
    settings: TrainingSettings
    uncut: float
    prepare_seconds: float
    train_seconds: float

    def sentence(self) -> str:
        """One sentence with the counts and times."""
        return (
            f"{self.tokens:,} tokens of {self.lines:,} lines, {self.distinct:,} distinct words, of which "
            f"{self.vocabulary:,} ({self.phrases:,} phrases) got vectors of dimension {self.settings.dim}: "
            f"{self.prepare_seconds:.0f} s for reading and {self.train_seconds:.0f} s for training "
            f"({self.settings.epochs} epochs, {self.settings.threads} threads)."
        )


def train_vectors(
    corpora: Sequence[str | Path],
    output: str | Path,
    *,
    preparation: Preparation | None = None,
    settings: TrainingSettings | None = None,
    progress: Progress = SILENT,
) -> TrainingReport:
    """Train fastText vectors from text and write them, whole or not at all.

    Args:
        corpora: Files of plain text or JSON Lines, also packed.
        output: The file to write: `.bin` for fastText's own model, else what `WordVectors.save` writes by the
            name; of these a folder keeps the character n-grams.
        preparation: How text becomes tokens.
        settings: How vectors are trained; None for what suits the size of the corpus.
        progress: Receives how far the work is.

    Raises:
        BilexError: fastText is not installed, a corpus cannot be read, or there are too few words.
    """
    how, wanted = preparation or Preparation(), settings or TrainingSettings()
    target = Path(output)
    if importlib.util.find_spec("fasttext_pybind") is None:
        raise BilexError("training vectors needs fastText; run: pip install 'bilex[train]'")
    for written in files_written(target):
        check_not_an_input(written, *corpora)
        check_writable(written)
    started = time.monotonic()
    with temporary_path(target, folder=True) as folder:
        prepared = prepare(corpora, folder, how, progress)
        for sentence in (sentence for report in prepared.reports for sentence in report.sentences()):
            progress.log(sentence)
        completed, vocabulary = _completed(wanted, prepared)
        ready = time.monotonic()
        model = folder / "model.bin"
        _train(prepared.path, model, completed, vocabulary, progress)
        prepared.path.unlink()
        trained = time.monotonic()
        _store(model, target)
    return TrainingReport(
        corpora=tuple(map(str, corpora)),
        lines=prepared.lines,
        left_out=sum((report.left_out for report in prepared.reports), Counter()),
        tokens=prepared.tokens,
        distinct=len(prepared.words),
        vocabulary=vocabulary,
        phrases=sum(prepared.words[phrase] >= (completed.min_count or 1) for phrase in prepared.phrases),
        settings=completed,
        uncut=prepared.uncut,
        prepare_seconds=round(ready - started, 2),
        train_seconds=round(trained - ready, 2),
    )


def _completed(wanted: TrainingSettings, prepared: Prepared) -> tuple[TrainingSettings, int]:
    """Settings for this corpus, the least count raised until the limit of words holds, and their number."""
    completed = wanted.for_size(prepared.tokens)
    least = completed.min_count or 1
    if len(prepared.words) > wanted.limit:
        least = max(least, sorted(prepared.words.values(), reverse=True)[wanted.limit] + 1)
    vocabulary = sum(count >= least for count in prepared.words.values())
    if vocabulary < 2:
        raise BilexError(
            f"{prepared.tokens:,} tokens hold {vocabulary} words that occur {least} times; give more text or "
            "a lower --min-count."
        )
    completed = replace(completed, min_count=least)
    arguments = completed.arguments(vocabulary)
    rows = 2 * vocabulary + arguments["bucket"]  # input and output of each word, and the n-grams
    needed, free = 4 * arguments["dim"] * rows, available_memory()
    if needed > free:
        raise BilexError(
            f"training {vocabulary:,} words takes {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free; "
            "use --limit for fewer words, a lower --dim, or --subwords none."
        )
    return completed, vocabulary


def _train(
    corpus: Path, model: Path, settings: TrainingSettings, vocabulary: int, progress: Progress
) -> None:
    """Run fastText in a separate process."""
    wanted = {
        "corpus": str(corpus),
        "model": str(model),
        "architecture": settings.architecture,
        "arguments": settings.arguments(vocabulary),
    }
    script = Path(__file__).with_name("fasttext_process.py")
    command = [sys.executable, "-P", str(script), json.dumps(wanted)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            message = _follow(process.stderr, progress)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0 or not model.is_file():
        last = message.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise BilexError(
            f"fastText could not train ({last[0].strip()}); free some memory or disk, or give more text."
        )


def _follow(stream: IO[bytes], progress: Progress) -> str:
    """Show fastText's progress; return the last that it wrote."""
    done, message = 0.0, ""
    with progress.task("Training", 100) as task:
        while chunk := stream.read1(_LONGEST_MESSAGE):  # type: ignore[attr-defined]
            message = (message + chunk.decode("utf-8", "replace"))[-_LONGEST_MESSAGE:]
            shown = _PROGRESS.findall(message)
            if shown:
                share, loss = map(float, shown[-1])
                task.advance(share - done, loss=loss)
                done = share
    return message


def _store(model: Path, output: Path) -> None:
    """Move fastText's model to the output, or write it in the format that the name of the output means."""
    if output.suffix.lower() == ".bin":
        # A full disk leaves a file that is cut off, which this refuses.
        WordVectors.load(model, limit=1, lowercase=False, keep_markers=True)
        with atomic_file(output) as temporary:
            model.replace(temporary)
        return
    WordVectors.load(model, lowercase=False).save(output, format_of_name(output))

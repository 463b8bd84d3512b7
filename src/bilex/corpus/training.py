"""Training fastText vectors from raw text."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from bilex.core.errors import BilexError
from bilex.core.files import atomic_file, check_not_an_input, check_writable, temporary_folder
from bilex.core.machine import available_memory
from bilex.core.progress import SILENT, Progress
from bilex.corpus.preparing import Preparation, Prepared, prepare
from bilex.corpus.settings import TrainingSettings
from bilex.vectors import WordVectors
from bilex.vectors.formats import files_written, format_of_name

_SENTENCE_END = "</s>"  # fastText's own word for the end of a line
_PROGRESS = re.compile(r"Progress:\s+([\d.]+)%.*?avg\.loss:\s+([\d.]+)")
_LONGEST_MESSAGE = 2000
_FEWEST_WORDS = 2


@dataclass(frozen=True)
class TrainingReport:
    """What went into vectors and what came out.

    Attributes:
        corpora: The files.
        lines: Lines of text that were used.
        left_out: Lines that were not, by reason.
        tokens: Words of running text, phrases counted as one.
        distinct: Distinct words.
        vocabulary: Words that got a vector.
        phrases: How many of these are phrases.
        settings: As they were after the size of the corpus decided what was left open.
        uncut: The share of characters that ICU would have cut into words, were it installed.
        prepare_seconds: The time for reading, cutting and joining.
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

    def as_dict(self) -> dict[str, Any]:
        """The report for JSON."""
        return asdict(self)

    def sentence(self) -> str:
        """One sentence with the figures."""
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
            name: `.vec` and `.txt` text, `.npy`, and without a suffix a folder, which keeps the character
                n-grams.
        preparation: How text becomes tokens.
        settings: How vectors are trained; None for what suits the size of the corpus.
        progress: Shows how far the work is.

    Raises:
        BilexError: fastText is not installed, a corpus cannot be read, or there are too few words.
    """
    how, wanted = preparation or Preparation(), settings or TrainingSettings()
    target = Path(output)
    check_can_train()
    for written in files_written(target):
        check_not_an_input(written, *corpora)
        check_writable(written)
    started = time.monotonic()
    with temporary_folder(target) as folder:
        prepared = prepare(corpora, folder, how, progress)
        for sentence in prepared.left_out.sentences():
            progress.say(sentence)
        filled, vocabulary = _filled_in(wanted, prepared)
        ready = time.monotonic()
        model = folder / "model.bin"
        _train(prepared.path, model, filled, vocabulary, progress)
        prepared.path.unlink()
        trained = time.monotonic()
        _store(model, target)
    return TrainingReport(
        corpora=tuple(map(str, corpora)),
        lines=prepared.lines,
        left_out=prepared.left_out.counts,
        tokens=prepared.tokens,
        distinct=len(prepared.words),
        vocabulary=vocabulary,
        phrases=sum(prepared.words[phrase] >= (filled.min_count or 1) for phrase in prepared.phrases),
        settings=filled,
        uncut=prepared.uncut,
        prepare_seconds=round(ready - started, 2),
        train_seconds=round(trained - ready, 2),
    )


def check_can_train() -> None:
    """Make sure that fastText is there before any text is read.

    Raises:
        BilexError: It is not installed.
    """
    if importlib.util.find_spec("fasttext_pybind") is None:
        raise BilexError("training vectors needs fastText; run: pip install 'bilex[train]'")


def _filled_in(wanted: TrainingSettings, prepared: Prepared) -> tuple[TrainingSettings, int]:
    """Settings for this corpus, the least count raised until no more words than the limit remain.

    Raises:
        BilexError: No words remain, or there is not enough memory for them.
    """
    filled = wanted.for_size(prepared.tokens)
    least = max(filled.min_count or 1, _least_count(prepared.words, wanted.limit))
    vocabulary = sum(count >= least for count in prepared.words.values())
    if vocabulary < _FEWEST_WORDS:
        raise BilexError(
            f"{prepared.tokens:,} tokens hold {vocabulary} words that occur {least} times; give more text or "
            "a lower --min-count."
        )
    filled = replace(filled, min_count=least)
    needed, free = filled.memory(vocabulary), available_memory()
    if needed > free:
        raise BilexError(
            f"training {vocabulary:,} words takes {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free; "
            "use --limit for fewer words, a lower --dim, or --subwords none."
        )
    return filled, vocabulary


def _least_count(words: Counter[str], limit: int) -> int:
    """The count that no more than `limit` words reach."""
    if len(words) <= limit:
        return 1
    counts = np.sort(np.fromiter(words.values(), np.int64))[::-1]
    return int(counts[limit]) + 1


def _train(
    corpus: Path, model: Path, settings: TrainingSettings, vocabulary: int, progress: Progress
) -> None:
    """Run fastText in a process of its own.

    Raises:
        BilexError: It failed.
    """
    wanted = {
        "corpus": str(corpus),
        "model": str(model),
        "architecture": settings.architecture,
        "arguments": settings.arguments(vocabulary),
    }
    command = [sys.executable, "-m", "bilex.corpus.fasttext_process"]
    with _running(command) as process:
        assert process.stdin is not None and process.stderr is not None
        with contextlib.suppress(BrokenPipeError):  # it ended at once; how is seen below
            process.stdin.write(json.dumps(wanted).encode())
            process.stdin.close()
        message = _followed(process.stderr, progress)
        code = process.wait()
    if code != 0 or not model.is_file():
        last = message.strip().splitlines()[-1:] or [f"exit code {code}"]
        raise BilexError(
            f"fastText could not train ({last[0].strip()}); free some memory or disk, or give more text."
        )


@contextlib.contextmanager
def _running(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended when the block is left, in whatever way."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _followed(stream: IO[bytes], progress: Progress) -> str:
    """Show fastText's progress; what else it wrote last is returned."""
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
    """Put fastText's model into its place, or write it in the format that the name of the output means."""
    if output.suffix.lower() == ".bin":
        # Refuses a file that the disk had no room for.
        WordVectors.load(model, limit=1, lowercase=False, keep_markers=True)
        with atomic_file(output) as temporary:
            model.replace(temporary)
        return
    vectors = WordVectors.load(model, lowercase=False)
    rows = [row for row, word in enumerate(vectors.index_to_key) if word != _SENTENCE_END]
    words = [vectors.index_to_key[row] for row in rows]
    kept = WordVectors(words, np.asarray(vectors.vectors)[rows], subwords=vectors.subwords)
    kept.save(output, format_of_name(output))

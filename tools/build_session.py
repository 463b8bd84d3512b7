"""Write docs/quickstart.md: a first session with the packaged sample.

    python tools/build_session.py               about a minute on 2 idle cores
    python tools/build_session.py --output -    to the screen

Every line after a $ is run in a new folder; its output follows. Progress, dates and durations are left out,
because they differ between runs.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bilex.core.files import write_text
from bilex.data import sample_path
from bilex.vectors import WordVectors

OUTPUT = Path(__file__).parents[1] / "docs" / "quickstart.md"
STEPS: tuple[tuple[str, str], ...] = (
    (
        "Check the files first. bilex takes the languages from the names of the files.",
        "bilex align en.vec fi.vec --seeds seeds.tsv --preset quick --dry-run",
    ),
    (
        "Align the two languages and write the model. The last lines say what to expect of it.",
        "bilex align en.vec fi.vec --seeds seeds.tsv --preset quick -o en-fi",
    ),
    (
        "Translate words. A translation that the seeds give is marked as known; others have a confidence.",
        "bilex translate en-fi friend river --format table -k 3",
    ),
    ("Translate in the other direction.", "bilex translate en-fi --reverse koira -k 3 --format table"),
    ("Describe the model.", "bilex info en-fi"),
    (
        "List the seeds that the model finds unlikely. Some of them are wrong.",
        "bilex info en-fi --doubtful -k 6",
    ),
    (
        "Export a dictionary: pairs in which each word is the other's first answer.",
        "bilex lexicon en-fi --mutual --min-confidence 0.5 --no-numbers -o dictionary.tsv",
    ),
    ("", "tail -n 4 dictionary.tsv"),
    (
        "Measure the accuracy on a test dictionary that the model did not learn from. NN ranks by cosine; "
        "CSLS corrects the cosine for words that are near to everything, and is the default.",
        "bilex evaluate en-fi test.tsv",
    ),
)
_PROGRESS = re.compile(r"^(.*: (done|\d+%|[\d.]+) after [\d.]+ s|opened |Measuring|reading ).*$")
_DURATIONS = ((r"after \d+ s\.", "after a while."), (r"20\d\d-\S+ with (.*), in [\d.]+ s$", r"DATE with \1"))


def session(sample: Path, steps: Sequence[tuple[str, str]] = STEPS) -> str:
    """Run the steps, each a sentence and a command, in a temporary folder; return the page."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for side in ("en", "fi"):
            WordVectors.load(sample / side).save(folder / f"{side}.vec")
        for name in ("seeds.tsv", "test.tsv"):
            (folder / name).write_bytes((sample / name).read_bytes())
        parts = [part for step in steps for part in _step(*step, folder)]
    start = (
        "# Quickstart\n\nThe main commands on the packaged English–Finnish sample, and what they print "
        "(a terminal draws lines around tables). Write the sample to files first:\n\n```console\n"
        '$ SAMPLE=$(python -c "from bilex.data import sample_path; print(sample_path())")\n'
        "$ bilex convert $SAMPLE/en -o en.vec && bilex convert $SAMPLE/fi -o fi.vec\n"
        "$ cp $SAMPLE/seeds.tsv $SAMPLE/test.tsv .\n```"
    )
    return "\n\n".join([start, *parts]) + "\n"


def _step(sentence: str, command: str, folder: Path) -> Iterator[str]:
    if sentence:
        yield sentence
    lines = (line.rstrip() for line in _run(command, folder).splitlines() if not _PROGRESS.match(line))
    output = "\n".join(lines)
    for pattern, plain in _DURATIONS:
        output = re.sub(pattern, plain, output, flags=re.MULTILINE)
    yield f"```console\n$ {command}\n{output.rstrip()}\n```"


def _run(command: str, folder: Path) -> str:
    """The output of a command, stdout and stderr together; one that fails ends the program."""
    words = shlex.split(command)
    if words[0] == "bilex":
        words = [sys.executable, "-m", "bilex", *words[1:]]
    done = subprocess.run(
        words, cwd=folder, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        raise SystemExit(f"{command}: failed\n{done.stdout}")
    return done.stdout


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", default=str(OUTPUT))
    options = parser.parse_args()
    page = session(sample_path())
    if options.output == "-":
        sys.stdout.write(page)
    else:
        write_text(options.output, page)


if __name__ == "__main__":
    main()

"""From raw text in two languages to a dictionary: train vectors, align them, export, measure.

A worked example on translated manual pages, which Debian packages carry (docs/guide/vectors.md has the whole
session):

    apt-get download manpages manpages-dev manpages-fr manpages-fr-dev
    for package in manpages*.deb; do dpkg-deb -x $package pages/${package%%_*}; done
    python examples/from_text.py --source en pages/manpages pages/manpages-dev \
        --target fr pages/manpages-fr pages/manpages-fr-dev --seeds seeds.tsv --test test.tsv -o from-text

Texts are files of plain text, or folders whose gzipped manual pages are turned into text first.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bilex import Lexicon, Translator, WordVectors, evaluate, get_method
from bilex.corpus import Preparation, TrainingReport, TrainingSettings, train_vectors
from bilex.corpus.tokens import Tokeniser
from bilex.evaluation import Evaluation

_PAGE = re.compile(r".+\.[1-9][a-z]*\.gz")
_REQUEST = re.compile(r"^[.'](?:\\\"|[A-Za-z]+)?")
_SILENT_REQUESTS = frozenset(
    ["TH", "so", "de", "ig", "if", "ie", "nr", "ds", "ft", "sp", "in", "nh", "hy", "ad"]
)
_FONTS = re.compile(r"\\f(?:\(..|\[[^]]*\]|.)|\\[&/,:%|^]|\\s[+-]?\d")
_CHARACTERS = {r"\-": "-", r"\ ": " ", r"\~": " ", r"\(aq": "'", r"\(cq": "'", r"\(oq": "'", r"\e": "\\"}


def page_lines(page: Path) -> Iterator[str]:
    """The running text of one gzipped manual page, without its formatting.

    Tables and program examples stay in; they are few and do no harm.
    """
    with gzip.open(page, "rt", encoding="utf-8", errors="replace") as file:
        paragraph: list[str] = []
        for line in file:
            request = line[1:].split(maxsplit=1)[:1] if line[:1] in ".'" else None
            if request is not None and (
                line[1:3] == '\\"' or request[:1] == [] or request[0] in _SILENT_REQUESTS
            ):
                continue
            text = _FONTS.sub("", _REQUEST.sub("", line).strip())
            for escape, character in _CHARACTERS.items():
                text = text.replace(escape, character)
            paragraph.append(text)
            if request is not None and request[0] in ("PP", "P", "LP", "SH", "SS", "TP", "IP"):
                yield " ".join(paragraph)
                paragraph = []
        yield " ".join(paragraph)


def text_files(texts: Iterable[str], made: Path) -> list[Path]:
    """Files of plain text: those given, and one for the manual pages of all folders given.

    Args:
        texts: Files of text, and folders of manual pages.
        made: The file to write the text of manual pages to.
    """
    given = [Path(text) for text in texts]
    folders = [path for path in given if path.is_dir()]
    files = [path for path in given if not path.is_dir()]
    pages = sorted(page for folder in folders for page in folder.rglob("*.gz") if _PAGE.fullmatch(page.name))
    if pages:
        with made.open("w", encoding="utf-8") as file:
            for page in pages:
                file.writelines(f"{line}\n" for line in page_lines(page) if line.strip())
        files.append(made)
    return files


def train(language: str, texts: Sequence[str], folder: Path, settings: TrainingSettings) -> TrainingReport:
    """Train the vectors of one language into `folder`/LANGUAGE.bin."""
    files = text_files(texts, folder / f"{language}.txt")
    how = Preparation(Tokeniser(language))
    return train_vectors(files, folder / f"{language}.bin", preparation=how, settings=settings)


def build(
    languages: tuple[str, str],
    texts: tuple[Sequence[str], Sequence[str]],
    seeds: Lexicon,
    folder: Path,
    *,
    method: str = "procrustes",
    settings: TrainingSettings | None = None,
) -> tuple[Translator, tuple[TrainingReport, TrainingReport]]:
    """The whole way: two corpora and seeds become a translator and a dictionary.

    Args:
        languages: Codes of the two languages.
        texts: Texts of each, as `text_files` takes them.
        seeds: Word pairs to learn from.
        folder: Where vectors, model and dictionary go.
        method: The aligner.
        settings: How vectors are trained.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = settings or TrainingSettings()
    reports = train(languages[0], texts[0], folder, wanted), train(languages[1], texts[1], folder, wanted)
    source, target = (WordVectors.load(folder / f"{language}.bin") for language in languages)
    translator = Translator(get_method(method)()).fit(
        source, target, seeds, languages=languages, progress=False
    )
    translator.save(folder / "model")
    translator.lexicon(mutual=True).save(folder / "dictionary.tsv")
    return translator, reports


def table(result: Evaluation, reports: Sequence[TrainingReport]) -> str:
    """What was read, and the accuracy, as text."""
    lines = [report.sentence() for report in reports]
    for direction, found in (("forward", result.forward), ("backward", result.backward)):
        shown = ", ".join(f"{name.upper()} {100 * value:.1f} %" for name, value in found.csls.items())
        lines.append(f"{direction}: {shown} of {found.covered} words")
    return "\n".join(lines)


def main() -> None:
    """The command line of this example."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", nargs="+", required=True, metavar=("LANGUAGE", "TEXT"))
    parser.add_argument("--target", nargs="+", required=True, metavar=("LANGUAGE", "TEXT"))
    parser.add_argument("--seeds", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--method", default="procrustes")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    languages = given.source[0], given.target[0]
    seeds, test = Lexicon.load(given.seeds), Lexicon.load(given.test)
    settings = TrainingSettings(threads=given.threads)
    texts = given.source[1:], given.target[1:]
    translator, reports = build(languages, texts, seeds, given.output, method=given.method, settings=settings)
    print(table(evaluate(translator.space, test, train=seeds), reports))


if __name__ == "__main__":
    main()

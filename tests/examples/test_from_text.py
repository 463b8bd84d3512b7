"""The worked example from raw text to a dictionary, at small size on made-up text."""

from __future__ import annotations

import gzip
from pathlib import Path

from made_text import write_texts

import from_text
from bilex import Lexicon, evaluate
from bilex.corpus import TrainingSettings

PAGE = rb""".\" a comment
.TH CAT 1
.SH NAME
cat \- join \fIFILES\fP
.PP
.B \-n
writes
\(aqx\(aq
"""


def test_two_texts_and_some_pairs_become_a_dictionary(tmp_path: Path) -> None:
    source, target, pairs = write_texts(tmp_path)
    seeds, test = Lexicon(pairs[::2]), Lexicon(pairs[1::2])
    settings = TrainingSettings(dim=24, epochs=6, buckets=2000)
    translator, reports = from_text.build(
        ("en", "fi"), ([str(source)], [str(target)]), seeds, tmp_path / "out", settings=settings
    )
    result = evaluate(translator.space, test, bootstrap=0)
    assert result.forward.covered == len(test)
    assert (result.forward.metrics["csls"] or {})["p@5"] > 0.6  # 0.02 by chance
    dictionary = Lexicon.load(tmp_path / "out" / "dictionary.tsv")
    assert len(dictionary) > len(seeds)
    assert "P@5" in from_text.table(result, reports)


def test_manual_pages_become_text(tmp_path: Path) -> None:
    page = tmp_path / "man1" / "cat.1.gz"
    page.parent.mkdir()
    page.write_bytes(gzip.compress(PAGE))
    (tmp_path / "readme.gz").write_bytes(gzip.compress(b"not a page"))
    (made,) = from_text.text_files([str(tmp_path)], tmp_path / "made.txt")
    assert made.read_text().split() == ["NAME", "cat", "-", "join", "FILES", "-n", "writes", "'x'"]


def test_files_of_text_are_taken_as_they_are(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("x")
    assert from_text.text_files([str(text)], tmp_path / "made.txt") == [text]

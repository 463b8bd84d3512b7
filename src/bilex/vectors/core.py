"""Words and their vectors, and nothing about two languages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError, optional_library
from bilex.core.progress import SILENT, Progress
from bilex.vectors.stored import Matrix, StoredRows, checked_blocks, part_of, row_blocks, row_norms

if TYPE_CHECKING:
    from bilex.vectors.fasttext import Subwords
    from bilex.vectors.formats import EncodingErrors, LoadReport

Step = Literal["unit", "center"]

_NOT_PORTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


@dataclass(eq=False, repr=False)
class WordVectors:
    """A vocabulary with one vector per word, most frequent word first.

    The names are gensim's: `index_to_key`, `key_to_index`, `vectors`.

    Args:
        index_to_key: The words, in order of frequency; each once.
        vectors: One row per word. A C-contiguous float32 array is shared, also if it is a read-only memory
            map; any other array of real numbers is copied into one. `StoredRows` decode float16 or int8
            rows of a file when they are used.
        preprocessing: The steps ("unit", "center") already applied to `vectors`, in order.
        subwords: fastText's character n-grams, which give vectors to words outside the vocabulary.
        report: What the reader of the file left out and why; None for vectors that were not read.
    """

    index_to_key: list[str]
    vectors: Matrix
    preprocessing: tuple[Step, ...] = ()
    subwords: Subwords | None = None
    report: LoadReport | None = None
    key_to_index: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.index_to_key = list(self.index_to_key)
        if not isinstance(self.vectors, StoredRows):
            self.vectors = _as_float32(self.vectors)
        if self.vectors.ndim != 2 or len(self.index_to_key) != len(self.vectors):
            raise BilexError(
                f"{len(self.index_to_key)} words do not fit vectors of shape {self.vectors.shape}; "
                "one row per word is needed."
            )
        if not self.vectors.shape[1]:
            raise BilexError("the vectors have no dimension; give at least one number for each word.")
        self.key_to_index = {word: index for index, word in enumerate(self.index_to_key)}
        if len(self.key_to_index) != len(self.index_to_key):
            raise BilexError("a word is in the vocabulary twice; keep one vector for each word.")
        wrong = [word for word in self.index_to_key if not isinstance(word, str)]
        if wrong:
            raise BilexError(f"the words must be strings, but one is {wrong[0]!r}; convert them with str().")

    def __len__(self) -> int:
        return len(self.index_to_key)

    def __contains__(self, word: object) -> bool:
        return word in self.key_to_index

    def __getitem__(self, word: str) -> npt.NDArray[np.float32]:
        index = self.key_to_index.get(word)
        if index is not None:
            return np.asarray(self.vectors[index])
        if self.subwords is not None:
            return self.subwords.vector(word)
        raise KeyError(word)

    def __repr__(self) -> str:
        steps = "+".join(self.preprocessing) or "raw"
        return f"WordVectors({len(self)} words × {self.dim}, {steps})"

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        limit: int | None = None,
        lowercase: bool = True,
        format: str | None = None,
        encoding_errors: EncodingErrors = "strict",
        verify: bool = True,
        keep_markers: bool = False,
        progress: Progress = SILENT,
    ) -> WordVectors:
        """Read word vectors from any of the formats of docs/reference/formats.md.

        Args:
            path: The file, or the folder of the safetensors format.
            limit: Read only this many entries, the first ones, which are the most frequent words.
            lowercase: Lower-case the words, as `Lexicon.load` does; of those that become the same the first
                stays. False keeps them as they are.
            format: "text", "binary", "fasttext", "npy" or "safetensors"; None to look at the content.
            encoding_errors: For words that are not UTF-8: "strict" refuses the file, "replace" puts U+FFFD
                for what cannot be read, "ignore" leaves it out.
            verify: Whether the files of a safetensors folder are compared with their checksums, which reads
                them completely.
            keep_markers: Whether markers of a trainer that are no words ("</s>", "<unk>") are kept; a
                safetensors folder is always taken as it is.
            progress: Where to report how far the reading is.

        Returns:
            The vectors, with a `report` of everything that was left out.

        Raises:
            BilexError: The file is missing, damaged, or holds no word vectors.
        """
        from bilex.vectors.formats import LoadOptions, load

        return load(
            Path(path), LoadOptions(limit, lowercase, encoding_errors, verify, keep_markers), format, progress
        )

    def save(self, path: str | Path, format: str | None = None, *, dtype: str = "float32") -> None:
        """Write the vectors, whole or not at all.

        Args:
            path: The file, or the folder of the safetensors format.
            format: "text", "binary", "npy" or "safetensors"; None to go by the suffix of `path`: .vec and
                .txt (also with .gz, .bz2, .xz) are text, .bin is binary, none is a safetensors folder.
            dtype: "float32", "float16" or "int8" (with a scale per row); the latter two only for safetensors.

        Raises:
            BilexError: The format cannot hold these words, or the file cannot be written.
        """
        from bilex.vectors.formats import save

        save(self, Path(path), format, dtype)

    @classmethod
    def from_gensim(cls, keyed_vectors: Any) -> WordVectors:
        """Take over gensim's `KeyedVectors`, and the n-grams of its fastText kind.

        The matrices are shared with gensim if they are float32.
        """
        from bilex.vectors.fasttext import Subwords

        words = [str(word) for word in keyed_vectors.index_to_key]
        matrix = np.asarray(keyed_vectors.vectors, dtype=np.float32)[: len(words)]
        ngrams = getattr(keyed_vectors, "vectors_ngrams", None)
        if ngrams is None or not len(ngrams) or keyed_vectors.max_n < 1:
            return cls(words, matrix)
        rows = np.asarray(ngrams, dtype=np.float32)
        return cls(words, matrix, subwords=Subwords(rows, keyed_vectors.min_n, keyed_vectors.max_n))

    def to_gensim(self) -> Any:
        """The same words and vectors as gensim's `KeyedVectors`, which needs gensim.

        Raises:
            BilexError: gensim is not installed.
        """
        with optional_library("to_gensim", "gensim"):
            from gensim.models import KeyedVectors
        keyed_vectors = KeyedVectors(vector_size=self.dim, count=0)
        keyed_vectors.add_vectors(self.index_to_key, np.asarray(self.vectors))
        return keyed_vectors

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return int(self.vectors.shape[1])

    def rows(self, words: Iterable[str]) -> npt.NDArray[np.int64]:
        """The row of each of `words`, all of which must be known."""
        return np.fromiter((self.key_to_index[word] for word in words), np.int64)

    def head(self, limit: int | None) -> WordVectors:
        """The `limit` most frequent words (all for None), sharing the memory of this one."""
        if limit is None or limit >= len(self):
            return self
        vectors = part_of(self.vectors, slice(limit))
        return replace(self, index_to_key=self.index_to_key[:limit], vectors=vectors)

    def check_finite(self) -> None:
        """Refuse vectors that hold NaN or infinity."""
        for _ in checked_blocks(row_blocks(self.vectors), self.index_to_key):
            pass

    def portable(self) -> WordVectors:
        """The vectors with words that every reader of word2vec files takes.

        Blanks, control characters and surrogates in words become underscores, since gensim,
        fastText, VecMap and MUSE divide lines at some of them. Words of nothing else, and words that become
        another word, are left out.
        """
        first: dict[str, int] = {}
        for row, word in enumerate(self.index_to_key):
            plain = _NOT_PORTABLE.sub("_", word.strip())
            if plain and (plain == word or plain not in self.key_to_index):
                first.setdefault(plain, row)
        if list(first) == self.index_to_key:
            return self
        rows = np.fromiter(first.values(), np.int64, len(first))
        vectors = np.asarray(self.vectors[rows])
        return WordVectors(list(first), vectors, self.preprocessing, self.subwords, self.report)

    def preprocessed(self, *steps: Step) -> WordVectors:
        """A copy with `steps` applied in order: "unit" (rows of length 1), "center" (mean row 0)."""
        vectors = np.array(self.vectors, dtype=np.float32)
        subwords = self.subwords
        for step in steps:
            mean = None
            if step == "unit":
                vectors /= row_norms(vectors)[:, None]
            elif step == "center":
                mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
                vectors -= mean
            else:
                raise BilexError(f"preprocessing step '{step}' is not known; use unit or center.")
            subwords = subwords and replace(subwords, means=(*subwords.means, mean))
        return replace(self, vectors=vectors, preprocessing=(*self.preprocessing, *steps), subwords=subwords)


def _as_float32(vectors: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """An array as float32 with its rows in order; the same memory where that is how it is."""
    try:
        given = np.asarray(vectors)
    except ValueError as error:  # lists of different lengths
        raise BilexError(f"the vectors are not a matrix ({error}); one row per word is needed.") from error
    if given.dtype.kind not in "fiub":
        raise BilexError(f"the vectors hold {given.dtype}, not real numbers; convert them to float32.")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(given, np.float32)

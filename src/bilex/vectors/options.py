"""The settings that every reader of word vectors takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bilex.core.errors import BilexError

MAX_DIM = 65536
MAX_NGRAM = 255

EncodingErrors = Literal["strict", "replace", "ignore"]


@dataclass(frozen=True)
class LoadOptions:
    """How to read.

    Args:
        limit: Read only the first so many entries of the file, as gensim does; None for all.
        lowercase: Lower-case the words; of those that become the same the first stays.
        encoding_errors: What to do with a word that is not UTF-8: "strict" refuses the file,
            "replace" puts U+FFFD for what cannot be read, "ignore" leaves it out.
        keep_markers: Whether markers of the trainer, such as "</s>", are kept as if they were words.
        verify: Whether the files of a safetensors folder are compared with their checksums.
    """

    limit: int | None = None
    lowercase: bool = False
    encoding_errors: EncodingErrors = "strict"
    verify: bool = True
    keep_markers: bool = False

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise BilexError(f"limit is {self.limit}; it must be at least 1, or None for every word.")
        if self.encoding_errors not in ("strict", "replace", "ignore"):
            raise BilexError(f"encoding_errors is '{self.encoding_errors}'; use strict, replace or ignore.")

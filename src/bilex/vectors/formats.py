"""One door to all formats: find the reader or writer and hand over."""

from __future__ import annotations

from pathlib import Path

from bilex.core.errors import BilexError
from bilex.core.files import check_ordinary, restore
from bilex.core.progress import SILENT, Progress
from bilex.vectors.core import WordVectors
from bilex.vectors.npy import WORD_LIST_SUFFIXES
from bilex.vectors.options import LoadOptions
from bilex.vectors.sniff import sniff
from bilex.vectors.source import SUFFIXES, open_source

FORMATS = ("text", "binary", "fasttext", "npy", "safetensors")
_BY_SUFFIX = {".vec": "text", ".txt": "text", ".bin": "binary", ".npy": "npy", "": "safetensors"}


def load(
    path: Path, options: LoadOptions, format: str | None = None, progress: Progress = SILENT
) -> WordVectors:
    """Read word vectors; see `WordVectors.load`."""
    from bilex.vectors import binary, fasttext, folder, npy, text

    if format is not None and format not in FORMATS:
        raise BilexError(f"format '{format}' is not known; use {', '.join(FORMATS)}.")
    restore(path)
    if not path.exists():
        raise BilexError(f"{path}: there is no such file; check the name.")
    check_ordinary(path)
    kind = format or sniff(path)
    if kind in ("text", "binary"):
        reader = text.read if kind == "text" else binary.read
        with open_source(path) as source:
            return reader(source, options, progress)
    readers = {"fasttext": fasttext.read, "npy": npy.read, "safetensors": folder.read}
    return readers[kind](path, options, progress)


def save(vectors: WordVectors, path: Path, format: str | None = None, dtype: str = "float32") -> None:
    """Write word vectors; see `WordVectors.save`."""
    from bilex.vectors import binary, folder, npy, text

    kind = format or format_of_name(path)
    if kind == "safetensors":
        folder.write(vectors, path, dtype)
        return
    if dtype != "float32":
        raise BilexError(f"{path}: dtype {dtype} needs the safetensors format; {kind} holds float32.")
    writers = {"text": text.write, "binary": binary.write, "npy": npy.write}
    if kind not in writers:
        raise BilexError(f"{path}: format '{kind}' cannot be written; use text, binary, npy or safetensors.")
    writers[kind](vectors, path)


def files_written(path: Path, format: str | None = None) -> list[Path]:
    """The files, or the folder, that `save` would write.

    Raises:
        BilexError: The suffix of the path means no format.
    """
    lists = [path.with_suffix(WORD_LIST_SUFFIXES[0])] if (format or format_of_name(path)) == "npy" else []
    return [path, *lists]


def files_read(path: Path) -> list[Path]:
    """The files that `load` may read for a path."""
    lists = [path.with_suffix(suffix) for suffix in WORD_LIST_SUFFIXES] if path.suffix == ".npy" else []
    return [path, *(other for other in lists if other.exists())]


def format_of_name(path: Path) -> str:
    """The format that the suffix of a file to be written means.

    Raises:
        BilexError: The suffix means nothing.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] and suffixes[-1] in SUFFIXES
    suffix = suffixes[-2] if packed and len(suffixes) > 1 else "" if packed else (suffixes or [""])[-1]
    kind = _BY_SUFFIX.get(suffix)
    if kind is None or (packed and kind != "text"):
        raise BilexError(
            f"{path}: its suffix names no format; use .vec, .txt (both also with .gz, .bz2 or .xz), .bin, "
            ".npy, or none for a safetensors folder."
        )
    return kind

"""The formats of word vectors: recognised by what a file holds, read and written."""

from __future__ import annotations

import re
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.core.files import check_input, restore
from bilex.core.progress import SILENT, Progress
from bilex.vectors.core import WordVectors
from bilex.vectors.reading import PACKED_SUFFIXES, LoadOptions, Source, open_source
from bilex.vectors.stored import row_blocks

FORMATS = ("text", "binary", "fasttext", "npy", "safetensors")
WORD_LIST_SUFFIXES = (".txt", ".words", ".vocab")
FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")
_NPY_MAGIC = b"\x93NUMPY"
_BY_SUFFIX = {".vec": "text", ".txt": "text", ".bin": "binary", ".npy": "npy", "": "safetensors"}
_HEADER = re.compile(rb"\s*\d+[ \t]+\d+[ \t\r]*\n")
_ENDS_IN_NUMBER = re.compile(rb"[ \t][-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[ \t\r]*$")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_LINES = 5
_PICKLE = "a Python pickle, such as gensim's save() writes; use gensim's save_word2vec_format instead"
_UNREADABLE = {
    b"PK\x03\x04": "a zip or npz archive; take out the matrix as .npy with a word list beside it",
    **dict.fromkeys((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), _PICKLE),
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), "UTF-16 text; convert it to UTF-8"),
    b"\x89HDF": "an HDF5 file; write its vectors as text or .npy instead",
}


def sniff(source: Source) -> str:
    """The format of an opened file, from its first bytes: "text", "binary", "fasttext" or "npy"."""
    head = source.head
    for start, what in _UNREADABLE.items():
        if head.startswith(start):
            raise BilexError(f"{source.name}: is {what}.")
    if head[8:10] == b'{"':
        raise BilexError(f"{source.name}: is a safetensors file; give the folder that holds it.")
    for kind, start in (("npy", _NPY_MAGIC), ("fasttext", FASTTEXT_MAGIC)):
        if head.startswith(start) and source.compression:
            raise BilexError(f"{source.name}: is a {kind} file inside {source.compression}; unpack it first.")
        if head.startswith(start):
            return kind
    return "binary" if _is_word2vec_binary(head) else "text"


def _is_word2vec_binary(head: bytes) -> bool:
    """Whether a header of two numbers is followed by something that is no text.

    A text file shows itself by a line that ends in a number, which bytes of floats practically
    never do; a broken text file by having no control bytes.
    """
    header = _HEADER.match(head)
    if header is None:
        return False
    body = head[header.end() :]
    if any(_ENDS_IN_NUMBER.search(line[-64:]) for line in body.split(b"\n", _LINES)[:_LINES]):
        return False
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        cut_off = error.start >= len(body) - 3 and len(body) > 3
        return not cut_off or bool(_CONTROL.search(body))
    return bool(_CONTROL.search(body))


def load(
    path: Path, options: LoadOptions, format: str | None = None, progress: Progress = SILENT
) -> WordVectors:
    """Read word vectors; see `WordVectors.load`."""
    from bilex.vectors import fasttext, folder, npy, word2vec

    if format is not None and format not in FORMATS:
        raise BilexError(f"format '{format}' is not known; use {', '.join(FORMATS)}.")
    restore(path)
    if not path.exists():
        raise BilexError(f"{path}: there is no such file; check the name.")
    check_input(path)
    kind = format or ("safetensors" if path.is_dir() else None)
    if kind in (None, "text", "binary"):
        with open_source(path) as source:
            kind = kind or sniff(source)
            if kind in ("text", "binary"):
                reader = word2vec.read_text if kind == "text" else word2vec.read_binary
                return reader(source, options, progress)
    readers = {"fasttext": fasttext.read, "npy": npy.read, "safetensors": folder.read}
    return readers[str(kind)](path, options, progress)


def save(vectors: WordVectors, path: Path, format: str | None = None, dtype: str = "float32") -> None:
    """Write word vectors; see `WordVectors.save`."""
    from bilex.vectors import folder, npy, word2vec

    kind = format or format_of_name(path)
    if kind == "safetensors":
        folder.write_blocks(
            path,
            vectors.index_to_key,
            vectors.dim,
            row_blocks(vectors.vectors),
            dtype=dtype,
            preprocessing=vectors.preprocessing,
            subwords=vectors.subwords,
        )
        return
    if dtype != "float32":
        raise BilexError(f"{path}: dtype {dtype} needs the safetensors format; {kind} holds float32.")
    if kind in ("text", "binary"):
        word2vec.write(vectors, path, binary=kind == "binary")
    elif kind == "npy":
        npy.write(vectors, path)
    else:
        raise BilexError(f"{path}: format '{kind}' cannot be written; use text, binary, npy or safetensors.")


def files_written(path: Path, format: str | None = None) -> list[Path]:
    """The files, or the folder, that `save` would write."""
    lists = [path.with_suffix(WORD_LIST_SUFFIXES[0])] if (format or format_of_name(path)) == "npy" else []
    return [path, *lists]


def files_read(path: Path) -> list[Path]:
    """The files that `load` may read for a path."""
    lists = [path.with_suffix(suffix) for suffix in WORD_LIST_SUFFIXES] if path.suffix == ".npy" else []
    return [path, *(other for other in lists if other.exists())]


def format_of_name(path: Path) -> str:
    """The format that the suffix of a file to be written means; an error if it means none."""
    suffixes = [suffix.lower() for suffix in path.suffixes] or [""]
    packed = suffixes[-1] in PACKED_SUFFIXES
    kind = _BY_SUFFIX.get(suffixes[-2] if packed and len(suffixes) > 1 else suffixes[-1])
    if kind is None or (packed and kind != "text"):
        raise BilexError(
            f"{path}: its suffix names no format; use .vec, .txt (both also with .gz, .bz2 or .xz), .bin, "
            ".npy, or none for a safetensors folder."
        )
    return kind

"""The formats of word vectors, recognised by what a file holds."""

from __future__ import annotations

import re
from pathlib import Path

from bilex.core.errors import BilexError
from bilex.vectors.source import Source, open_source

FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")
NPY_MAGIC = b"\x93NUMPY"
_HEADER = re.compile(rb"\s*\d+[ \t]+\d+[ \t\r]*\n")
_ENDS_IN_NUMBER = re.compile(rb"[ \t][-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[ \t\r]*$")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_LINES = 5
_STRANGERS = (
    ((b"PK\x03\x04",), "a zip or npz archive; take out the matrix as .npy with a word list beside it"),
    (
        (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
        "a Python pickle, such as gensim's save() writes; use gensim's save_word2vec_format instead",
    ),
    ((b"\xff\xfe", b"\xfe\xff"), "UTF-16 text; convert it to UTF-8"),
    ((b"\x89HDF",), "an HDF5 file; write its vectors as text or .npy instead"),
)


def sniff(path: Path) -> str:
    """The format of what stands at `path`: "text", "binary", "fasttext", "npy" or "safetensors".

    Raises:
        BilexError: There is nothing, or something that holds no word vectors.
    """
    if path.is_dir():
        return "safetensors"
    with open_source(path) as source:
        return sniff_source(source)


def sniff_source(source: Source) -> str:
    """The format of an opened file, from its first bytes.

    Raises:
        BilexError: It is a format that cannot be read.
    """
    head = source.head
    for starts, what in _STRANGERS:
        if head.startswith(starts):
            raise BilexError(f"{source.name}: is {what}.")
    if head[8:10] == b'{"':
        raise BilexError(f"{source.name}: is a safetensors file; give the folder that holds it.")
    if head.startswith(FASTTEXT_MAGIC):
        kind = "fasttext"
    elif head.startswith(NPY_MAGIC):
        kind = "npy"
    elif _is_word2vec_binary(head):
        kind = "binary"
    else:
        kind = "text"
    if source.compression and kind in ("fasttext", "npy"):
        raise BilexError(f"{source.name}: is a {kind} file inside {source.compression}; unpack it first.")
    return kind


def _is_word2vec_binary(head: bytes) -> bool:
    """Whether a header of two numbers is followed by something that is no text.

    A text file shows itself by a line that ends in a number, which bytes of floats practically
    never do; a broken text file by having no control bytes.
    """
    header = _HEADER.match(head)
    if header is None:
        return False
    lines = head[header.end() :].split(b"\n", _LINES)[:_LINES]
    if any(_ENDS_IN_NUMBER.search(line[-64:]) for line in lines):
        return False
    body = head[header.end() :]
    return bool(_CONTROL.search(body)) or not _is_utf8(body)


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start >= len(body) - 3 and len(body) > 3
    return True

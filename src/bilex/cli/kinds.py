"""Is it vectors, a dictionary or a model?"""

from __future__ import annotations

import re
from pathlib import Path

from bilex.core.errors import BilexError

_OF_SEVERAL_FILES = (".idx", ".dz")
_OF_VECTORS_TOO = (".txt",)
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_FEWEST_NUMBERS = 2
_HEAD_BYTES = 1 << 16
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def kind_of(path: Path) -> str:
    """What stands at a path: "model", "many" (a model of many languages), "vectors" or "dictionary".

    Folders are known by their config.json, files by their suffix or else by their first lines: a line of
    vectors ends in two numbers or more, a line of a dictionary does not.
    """
    if path.is_dir():
        from bilex.model.storage import is_many, is_model

        return "model" if is_model(path) else "many" if is_many(path) else "vectors"
    if path.suffix.lower() in _dictionary_suffixes():
        return "dictionary"
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise BilexError(f"{path}: cannot be read ({error.strerror or error}).") from error
    if head.startswith(_UTF_16_MARKS):  # as spreadsheets save text; vectors are never so
        return "dictionary"
    return "dictionary" if _looks_like_pairs(head) else "vectors"


def _dictionary_suffixes() -> set[str]:
    """Suffixes that only dictionaries have."""
    from bilex.lexicon.formats import all_formats

    known = {suffix for form in all_formats() for suffix in form.suffixes}
    return (known | set(_OF_SEVERAL_FILES)) - set(_OF_VECTORS_TOO)


def _looks_like_pairs(head: bytes) -> bool:
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:
            return False
        text = head[: error.start].decode("utf-8-sig")
    if "\0" in text:
        return False
    lines = [line for line in text.splitlines()[:20] if line.strip()]
    return bool(lines) and not any(_ends_in_numbers(line) for line in lines)


def _ends_in_numbers(line: str) -> bool:
    last = line.split()[-_FEWEST_NUMBERS:]
    return len(last) == _FEWEST_NUMBERS and all(_NUMBER.fullmatch(word) for word in last)

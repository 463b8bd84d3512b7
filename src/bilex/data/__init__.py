"""Data that the package carries."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from bilex.core.errors import BilexError


def sample_path() -> Path:
    """The folder of the English–Finnish sample.

    It holds `en` and `fi` (vectors), `seeds.tsv` and `test.tsv` (dictionaries) and `SOURCES.md`.

    Raises:
        BilexError: The package was installed without its data.
    """
    path = Path(str(resources.files("bilex.data"))) / "sample"
    if not path.is_dir():
        raise BilexError(f"{path}: the sample is missing from this installation; install bilex again.")
    return path

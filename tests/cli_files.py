"""The files that the tests of the command line work on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Files(NamedTuple):
    """A planted problem as files."""

    folder: Path
    source: Path
    target: Path
    seeds: Path
    test: Path
    model: Path

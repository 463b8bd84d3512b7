"""Makes the examples and the made-up texts importable."""

from __future__ import annotations

import sys
from pathlib import Path

_REPOSITORY = Path(__file__).parents[2]
sys.path[:0] = [str(_REPOSITORY / "examples"), str(_REPOSITORY / "tests" / "corpus")]

"""numba's compiler, with a folder for what it has compiled.

numba keeps compiled loops beside their module or in the user's cache. Where neither can be written, it would
refuse to compile at all; then they go into bilex's cache folder, which can always be written.
"""

from __future__ import annotations

import os
from pathlib import Path

from numba import njit, types
from numba.core import config

from bilex.core.machine import cache_folder, can_write

__all__ = ["njit", "types"]

if "NUMBA_CACHE_DIR" not in os.environ and not can_write(Path(__file__).parent / "__pycache__"):
    os.environ["NUMBA_CACHE_DIR"] = str(cache_folder() / "numba")
    config.reload_config()

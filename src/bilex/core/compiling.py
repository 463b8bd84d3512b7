"""numba's compiler, with a place for what it has compiled.

Compiled loops are kept beside the module they come from. A package that was installed by somebody else, or
lies on a read-only disk, leaves no room there; then they go into bilex's cache folder, which can always be
written. Without any place numba would refuse to compile at all.
"""

from __future__ import annotations

import os
from pathlib import Path

from numba import njit, types
from numba.core import config
from numba.extending import overload

from bilex.core.machine import cache_folder, can_write

__all__ = ["njit", "overload", "types"]

_VARIABLE = "NUMBA_CACHE_DIR"

if _VARIABLE not in os.environ and not can_write(Path(__file__).parent / "__pycache__"):
    os.environ[_VARIABLE] = str(cache_folder() / "numba")
    config.reload_config()

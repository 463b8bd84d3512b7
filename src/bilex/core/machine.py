"""The machine: its memory and processor, and the folder for caches. Nothing here imports torch."""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import os
import platform
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

_CACHE_VARIABLE = "BILEX_CACHE"
_CGROUP = Path("/sys/fs/cgroup")
_STATUS, _CPU_INFO = Path("/proc/self/status"), Path("/proc/cpuinfo")
_LIBRARIES = ("numpy", "scipy", "torch", "numba", "safetensors", "transformers", "tokenizers", "ray")

# Vector instructions: on x86 under Linux's names, what each level of oneDNN adds to the one before.
_LEVELS = {
    "sse41": "sse4_2",
    "avx": "avx",
    "avx2": "avx2 f16c fma",
    "avx512_core": "avx512f avx512bw avx512dq avx512vl",
    "avx512_core_vnni": "avx512_vnni",
    "avx512_core_bf16": "avx512_bf16",
    "avx512_core_fp16": "avx512_fp16 avx_vnni",
    "avx512_core_amx": "amx_tile amx_int8 amx_bf16",
    "": "avx_vnni_int8 amx_fp16",
}
_ARM = "neon fullfp16 dotprod i8mm bf16 sve sve2 sme"
_OTHER_NAMES = {"default": "sse41", "avx2_vnni": "avx2", "avx2_vnni_2": "avx2"}  # of levels
# They make torch and oneDNN behave as on a smaller processor; bilex follows them.
_RESTRICTIONS = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")


@dataclass(frozen=True)
class Processor:
    """A processor as far as this process may use it: its name, vector instructions, and cores.

    Instructions that ATEN_CPU_CAPABILITY or ONEDNN_MAX_CPU_ISA forbid are left out.
    """

    name: str
    features: frozenset[str]
    threads: int


def processor() -> Processor:
    """The processor of this machine."""
    model = re.search(r"^model name\s*:(.*)$", _text(_CPU_INFO), re.MULTILINE)
    name = model[1].strip() if model else platform.processor() or platform.machine()
    affinity = getattr(os, "sched_getaffinity", None)
    return Processor(name, frozenset(_features()), len(affinity(0)) if affinity else os.cpu_count() or 1)


def _features() -> set[str]:
    """The vector instructions that LLVM finds, under Linux's names, without the forbidden ones."""
    try:
        from llvmlite.binding import get_host_cpu_features

        found = {re.sub(r"[._-]", "", name) for name, there in get_host_cpu_features().items() if there}
    except (ImportError, RuntimeError):  # LLVM does not know this processor
        return set()
    allowed = len(_LEVELS)
    for variable in _RESTRICTIONS:
        level = os.environ.get(variable, "").lower()
        level = _OTHER_NAMES.get(level, level)
        if level and level in _LEVELS:
            allowed = min(allowed, list(_LEVELS).index(level) + 1)
    names = " ".join([*list(_LEVELS.values())[:allowed], _ARM]).split()
    return {name for name in names if name.replace("_", "") in found}


def library_versions() -> dict[str, str]:
    """The versions of those libraries that results depend on and that are installed."""
    from importlib import metadata

    versions: dict[str, str] = {}
    for name in _LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def total_memory() -> int:
    """Bytes of memory: the machine's, or what the container may use of it where that is less."""
    import psutil

    total = int(psutil.virtual_memory().total)
    return min(total, _container_number("memory.max") or total)


def available_memory() -> int:
    """Bytes that can be allocated now without swapping."""
    import psutil

    available = int(psutil.virtual_memory().available)
    limit, used = _container_number("memory.max"), _container_number("memory.current")
    if limit is None or used is None:
        return available
    # Copies of files count as used, but the system drops them when memory is short.
    files = _container_number("memory.stat", r"^inactive_file (\d+)$") or 0
    return max(0, min(available, limit - used + files))


def _container_number(name: str, pattern: str = r"^(\d+)$") -> int | None:
    """A number of this control group; None outside a container with limits."""
    found = re.search(pattern, _text(_CGROUP / name), re.MULTILINE)
    return int(found[1]) if found else None


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def peak_memory() -> int | None:
    """The most bytes of memory that this process has used so far; None if the system does not say."""
    if found := re.search(r"^VmHWM:\s*(\d+)", _text(_STATUS), re.MULTILINE):
        return int(found[1]) * 1024
    if sys.platform == "darwin":
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    import psutil

    return getattr(psutil.Process().memory_info(), "peak_wset", None)  # Windows


def cache_folder() -> Path:
    r"""Where bilex keeps what it can make again; a folder that can be written.

    The environment variable BILEX_CACHE names it; without that it is the system's place for caches
    (~/.cache/bilex, ~/Library/Caches/bilex, %LOCALAPPDATA%\bilex\Cache). Where that cannot be written, as
    with a read-only home, a temporary folder replaces it until this process ends, with a warning.
    """
    import platformdirs

    stated = os.environ.get(_CACHE_VARIABLE)
    usual = platformdirs.user_cache_path("bilex", appauthor=False)
    return _or_temporary(Path(stated).absolute() if stated else usual)


@functools.cache
def _or_temporary(folder: Path) -> Path:
    if folder.is_absolute() and can_write(folder):  # it is relative where there is no home at all
        return folder
    temporary = Path(tempfile.mkdtemp(prefix="bilex-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    logging.getLogger("bilex").warning(
        "%s cannot be written, so %s replaces it as the cache until bilex ends; set %s to another folder.",
        folder,
        temporary,
        _CACHE_VARIABLE,
    )
    return temporary


def can_write(folder: Path) -> bool:
    """Whether a file can be made in a folder, which is made too if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False

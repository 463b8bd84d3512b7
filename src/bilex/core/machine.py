"""What is known about the machine: memory, processor, and the folder where things may be kept.

The same questions on Linux, macOS and Windows. Nothing here imports torch.
"""

from __future__ import annotations

import contextlib
import functools
import getpass
import logging
import os
import platform
import re
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

CACHE_VARIABLE = "BILEX_CACHE"
_CGROUPS = Path("/sys/fs/cgroup")
_STATUS, _CPU_INFO = Path("/proc/self/status"), Path("/proc/cpuinfo")
_ONLY_OURS = 0o700
_LIBRARIES = ("numpy", "scipy", "torch", "numba", "safetensors", "transformers", "tokenizers", "ray")

# Vector instructions under Linux's names. On x86, what each level of oneDNN adds to the one before.
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
_ARM = frozenset(("asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve", "sve2", "sme"))
_KNOWN = frozenset(name for names in _LEVELS.values() for name in names.split()) | _ARM
_OTHER_SPELLINGS = {"neon": "asimd", "fullfp16": "asimdhp", "dotprod": "asimddp"}  # LLVM's
# They make torch and oneDNN behave as on a smaller processor: whoever sets them wants all of bilex to.
_RESTRAINTS = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")


@dataclass(frozen=True)
class Processor:
    """A processor as far as this process may use it: its maker's name, vector instructions, and cores.

    Instructions have Linux's names; those that ATEN_CPU_CAPABILITY or ONEDNN_MAX_CPU_ISA forbid are left out.
    """

    name: str
    features: frozenset[str]
    threads: int


def processor() -> Processor:
    """The processor of this machine."""
    affinity = getattr(os, "sched_getaffinity", None)
    info = _text(_CPU_INFO)
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", info, re.MULTILINE)  # of x86 and of ARM
    features = named(flags[1].split() if flags else () if info else _compilers_list())
    for level in (os.environ.get(variable, "").lower() for variable in _RESTRAINTS):
        names = list(_LEVELS)
        top = {"default": "sse41"}.get(level, "avx2" if level.startswith("avx2") else level)
        if top and top in names:
            allowed = " ".join(_LEVELS[name] for name in names[: names.index(top) + 1])
            features &= _ARM.union(allowed.split())
    return Processor(_processor_name(info), features, len(affinity(0)) if affinity else os.cpu_count() or 1)


def named(spelled: tuple[str, ...] | list[str]) -> frozenset[str]:
    """The known instructions among some words, spelled as Linux or LLVM does."""
    known = {name.replace("_", ""): name for name in _KNOWN} | _OTHER_SPELLINGS
    bare = (re.sub(r"[._-]", "", word) for word in spelled)
    return frozenset(known[word] for word in bare if word in known)


def _compilers_list() -> list[str]:
    """What numba's compiler finds, which knows every system but takes time to load."""
    try:
        from llvmlite.binding import get_host_cpu_features

        return [name for name, there in get_host_cpu_features().items() if there]
    except (ImportError, RuntimeError):  # LLVM does not know this processor
        return []


def _processor_name(info: str) -> str:
    found = None
    if sys.platform == "win32":
        import winreg

        place = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, place) as key:
            return str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()
    if sys.platform == "darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        with contextlib.suppress(OSError):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            found = re.match("(.*)", done.stdout)
    else:
        found = re.search(r"^model name\s*:(.*)$", info, re.MULTILINE)
    return (found[1].strip() if found else "") or platform.processor() or platform.machine()


def library_versions() -> dict[str, str]:
    """The versions of the libraries that numbers come from, as far as they are installed."""
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
    limit = _container_number("memory.max", "memory.limit_in_bytes")
    return total if limit is None else min(total, limit)


def available_memory() -> int:
    """Bytes that can be taken now without pushing anybody's memory to the disk."""
    import psutil

    available = int(psutil.virtual_memory().available)
    limit = _container_number("memory.max", "memory.limit_in_bytes")
    used = _container_number("memory.current", "memory.usage_in_bytes")
    if limit is None or used is None:
        return available
    # Copies of files count as used, but the system drops them when memory is short.
    files = _container_number("memory.stat", "memory.stat", r"^(?:total_)?inactive_file (\d+)$") or 0
    return max(0, min(available, limit - used + files))


def _container_number(name: str, older: str, pattern: str = r"^(\d+)$") -> int | None:
    """A number of this control group, of either version; None outside a container with limits."""
    for path in (_CGROUPS / name, _CGROUPS / "memory" / older):
        if found := re.search(pattern, _text(path), re.MULTILINE):
            return int(found[1])
    return None


def _text(path: Path) -> str:
    """What a file of the system says; nothing where there is none."""
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def peak_memory() -> int | None:
    """The most bytes of memory that this process has taken so far; None if the system does not say."""
    if found := re.search(r"^VmHWM:\s*(\d+)", _text(_STATUS), re.MULTILINE):
        return int(found[1]) * 1024
    import psutil

    peak = getattr(psutil.Process().memory_info(), "peak_wset", None)  # Windows
    if peak is None and sys.platform != "win32":
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return None if peak is None else int(peak)


def cache_folder() -> Path:
    r"""Where bilex keeps what it can make again; a folder that can be written.

    The environment variable BILEX_CACHE names it; without that it is the system's place for caches
    (~/.cache/bilex, ~/Library/Caches/bilex, %LOCALAPPDATA%\bilex\Cache). Where that cannot be written, as
    with a read-only home, a folder among the temporary files takes its place and the log says so.
    """
    if stated := os.environ.get(CACHE_VARIABLE):
        return _writable(Path(stated).absolute())
    import platformdirs

    try:
        return _writable(platformdirs.user_cache_path("bilex", appauthor=False))
    except RuntimeError:  # there is no home folder at all
        return _writable(None)


@functools.lru_cache(maxsize=8)
def _writable(folder: Path | None) -> Path:
    """A folder if it can be written, else one among the temporary files; said once for each folder."""
    if folder is not None and can_write(folder):
        return folder
    instead = _temporary_folder()
    logging.getLogger("bilex").warning(
        "%s cannot be written, so %s takes its place as the cache; set %s to a folder that lasts.",
        folder or "The home folder",
        instead,
        CACHE_VARIABLE,
    )
    return instead


def can_write(folder: Path) -> bool:
    """Whether a file can be made in a folder, which is made too if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _temporary_folder() -> Path:
    """Our folder among the temporary files, the same in every process of this user, closed to others.

    A folder of that name that is somebody else's, or that others may write, is not trusted: what is kept
    there may be run.
    """
    try:
        user = re.sub(r"\W", "", getpass.getuser()) or "user"
    except (OSError, KeyError, ImportError):  # a user without a name, as in some containers
        user = "user"
    folder = Path(tempfile.gettempdir()) / f"bilex-{user}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=_ONLY_OURS, exist_ok=True)
        seen = folder.lstat()
        ours = not hasattr(os, "getuid") or (
            seen.st_uid == os.getuid() and not seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        )
        if stat.S_ISDIR(seen.st_mode) and ours and can_write(folder):
            return folder
    return Path(tempfile.mkdtemp(prefix="bilex-"))

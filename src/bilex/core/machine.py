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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

CACHE_VARIABLE = "BILEX_CACHE"
_CGROUPS = Path("/sys/fs/cgroup")
_STATUS, _CPU_INFO = Path("/proc/self/status"), Path("/proc/cpuinfo")
_ONLY_OURS = 0o700
_LIBRARIES = ("numpy", "scipy", "torch", "numba", "safetensors", "transformers", "tokenizers", "ray")


# Vector instructions under the names of Linux, whatever the system calls them.
_AVX = ("avx",)
_AVX2 = (*_AVX, "avx2", "f16c", "fma")
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512dq", "avx512vl")
_AVX512_VNNI = (*_AVX512, "avx512_vnni")
_AVX512_BF16 = (*_AVX512_VNNI, "avx512_bf16")
_AVX512_FP16 = (*_AVX512_BF16, "avx512_fp16", "avx_vnni")
_AMX = (*_AVX512_FP16, "amx_tile", "amx_int8", "amx_bf16")
_BEYOND_AVX512 = ("avx_vnni_int8", "amx_fp16")
_ARM = ("asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve", "sve2", "sme")
_X86 = ("sse4_2", *_AMX, *_BEYOND_AVX512)
_OTHER_SPELLINGS = {
    "avx10": "avx",  # macOS: AVX1.0
    "neon": "asimd",
    "advsimd": "asimd",
    "fp16": "asimdhp",
    "fullfp16": "asimdhp",
    "dotprod": "asimddp",
}

# What torch's own loops and oneDNN may still use of an x86 processor when these variables hold them back.
_ATEN_LEVELS: Mapping[str, tuple[str, ...]] = {
    "default": (),
    "avx2": (*_AVX2, "avx_vnni", "avx_vnni_int8"),
}
_ONEDNN_LEVELS: Mapping[str, tuple[str, ...]] = {
    "sse41": (),
    "avx": _AVX,
    "avx2": _AVX2,
    "avx2_vnni": (*_AVX2, "avx_vnni"),
    "avx2_vnni_2": (*_AVX2, "avx_vnni", "avx_vnni_int8"),
    "avx512_core": _AVX512,
    "avx512_core_vnni": _AVX512_VNNI,
    "avx512_core_bf16": _AVX512_BF16,
    "avx512_core_fp16": _AVX512_FP16,
    "avx512_core_amx": _AMX,
}
# Variables that hold libraries back, and what they still use at each level where that is known.
RESTRAINTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "ATEN_CPU_CAPABILITY": _ATEN_LEVELS,
    "ONEDNN_MAX_CPU_ISA": _ONEDNN_LEVELS,
    "DNNL_MAX_CPU_ISA": _ONEDNN_LEVELS,
    "MKL_ENABLE_INSTRUCTIONS": {},
}


@dataclass(frozen=True)
class Processor:
    """A processor as far as this process may use it.

    Attributes:
        name: As its maker calls it.
        features: Vector instructions under Linux's names ("avx2", "avx512_bf16", "asimd"), less those that
            ATEN_CPU_CAPABILITY or ONEDNN_MAX_CPU_ISA forbid.
        threads: How many cores this process may use, which can be fewer than the machine has.
    """

    name: str
    features: frozenset[str]
    threads: int


def processor() -> Processor:
    """The processor of this machine."""
    return Processor(_processor_name(), usable_instructions(), _cores())


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
    limit = _container_number("memory.max", "memory/memory.limit_in_bytes")
    return total if limit is None else min(total, limit)


def available_memory() -> int:
    """Bytes that can be taken now without pushing anybody's memory to the disk."""
    import psutil

    available = int(psutil.virtual_memory().available)
    limit = _container_number("memory.max", "memory/memory.limit_in_bytes")
    used = _container_number("memory.current", "memory/memory.usage_in_bytes")
    if limit is None or used is None:
        return available
    return max(0, min(available, limit - used + _container_file_cache()))


def peak_memory() -> int | None:
    """The most bytes of memory that this process has taken so far; None if the system does not say."""
    try:
        text = _STATUS.read_text(encoding="ascii", errors="replace")
    except OSError:
        text = ""
    if found := re.search(r"^VmHWM:\s*(\d+)", text, re.MULTILINE):
        return int(found[1]) * 1024
    import psutil

    peak = getattr(psutil.Process().memory_info(), "peak_wset", None)  # Windows
    return int(peak) if peak is not None else _peak_by_usage()


def cache_folder() -> Path:
    r"""Where bilex keeps what it can make again; a folder that can be written.

    The environment variable BILEX_CACHE names it; without that it is the system's place for caches
    (~/.cache/bilex, ~/Library/Caches/bilex, %LOCALAPPDATA%\bilex\Cache). Where that cannot be written, as
    with a read-only home, a folder among the temporary files takes its place and the log says so.
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return _writable(Path(named).absolute())
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
    try:
        folder.mkdir(mode=_ONLY_OURS, exist_ok=True)
        seen = folder.lstat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="bilex-"))
    ours = not hasattr(os, "getuid") or (
        seen.st_uid == os.getuid() and not seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )
    if stat.S_ISDIR(seen.st_mode) and ours and can_write(folder):
        return folder
    return Path(tempfile.mkdtemp(prefix="bilex-"))


def _container_number(*names: str) -> int | None:
    """The first of a control group's files that holds a number; None outside a container with limits."""
    for name in names:
        try:
            return int((_CGROUPS / name).read_text(encoding="ascii"))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return None


def _container_file_cache() -> int:
    """Bytes that count as used but hold copies of files, which the system drops when memory is short."""
    for name in ("memory.stat", "memory/memory.stat"):
        try:
            text = (_CGROUPS / name).read_text(encoding="ascii")
        except OSError:
            continue
        if found := re.search(r"^(?:total_)?inactive_file (\d+)$", text, re.MULTILINE):
            return int(found[1])
    return 0


def _peak_by_usage() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _processor_name() -> str:
    if sys.platform == "win32":
        import winreg

        with winreg.OpenKey(
            winreg.HKEY_LOCAL_MACHINE, r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
        ) as key:
            return str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()
    if sys.platform == "darwin":
        return _sysctl("-n", "machdep.cpu.brand_string") or platform.machine()
    try:
        text = _CPU_INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"^model name\s*:(.*)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()


def usable_instructions() -> frozenset[str]:
    """The vector instructions that torch may use here: the processor's, less what a variable forbids.

    ATEN_CPU_CAPABILITY and ONEDNN_MAX_CPU_ISA make torch and oneDNN behave as on a smaller processor;
    whoever sets them wants all of bilex to.
    """
    found = named(_spelled_by_the_system())
    for variable, levels in RESTRAINTS.items():
        allowed = levels.get(os.environ.get(variable, "").lower())
        if allowed is not None:
            found &= {"sse4_2", *allowed, *_ARM}
    return found


def named(spelled: Iterable[str]) -> frozenset[str]:
    """The instructions among some words, in whatever way a system spells them."""
    known = {re.sub(r"[._-]", "", name): name for name in (*_X86, *_ARM)} | _OTHER_SPELLINGS
    bare = (re.sub(r"[._-]", "", word.lower().removeprefix("feat_")) for word in spelled)
    return frozenset(known[word] for word in bare if word in known)


def _spelled_by_the_system() -> Iterable[str]:
    if _CPU_INFO.is_file():
        return _of_cpu_info(_CPU_INFO.read_text(encoding="utf-8", errors="replace"))
    if sys.platform == "darwin":
        return _of_sysctl(_sysctl("-a"))
    return _of_llvm()


def _of_cpu_info(text: str) -> list[str]:
    """The words of the first processor in Linux's list: "flags" on x86, "Features" on ARM."""
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return found[1].split() if found else []


def _of_sysctl(text: str) -> list[str]:
    """The words of macOS: lists on Intel, one line per instruction with 1 or 0 on ARM."""
    words = re.findall(r"^hw\.optional\.(?:arm\.)?(\w+): 1$", text, re.MULTILINE)
    for line in re.findall(r"^machdep\.cpu\.(?:leaf7_)?features: (.*)$", text, re.MULTILINE):
        words += line.split()
    return words


def _of_llvm() -> list[str]:
    """What numba's compiler finds, which knows every system but takes time to load."""
    try:
        from llvmlite.binding import get_host_cpu_features

        return [name for name, there in get_host_cpu_features().items() if there]
    except (ImportError, RuntimeError):  # LLVM does not know this processor
        return []


def _sysctl(*arguments: str) -> str:
    """What macOS's sysctl answers; nothing if it cannot be asked."""
    try:
        asked = subprocess.run(["/usr/sbin/sysctl", *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return asked.stdout.strip()

"""The processor's vector instructions, under one name on every system.

The names are those of Linux: "avx2", "avx512_bf16", "amx_int8", and "asimd", "bf16", "i8mm" on ARM. Each
system spells them in its own way; whatever else it lists is left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

_CPU_INFO = Path("/proc/cpuinfo")
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
        return _of_sysctl(ask_sysctl("-a"))
    return _of_llvm()


def _of_cpu_info(text: str) -> list[str]:
    """The words of the first processor in Linux's list: "flags" on x86, "Features" on ARM."""
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return found[1].split() if found else []


def _of_sysctl(text: str) -> list[str]:
    """The words of macOS: lists on Intel, one line an instruction with 1 or 0 on ARM."""
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


def ask_sysctl(*arguments: str) -> str:
    """What macOS's sysctl answers; nothing if it cannot be asked."""
    try:
        asked = subprocess.run(["/usr/sbin/sysctl", *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return asked.stdout.strip()

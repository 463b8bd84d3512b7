"""Which precision a job computes in on this CPU: decided here, by timing the product that the job is made of.

A processor multiplies 8-bit integers or bfloat16 several times as fast as float32 if it has instructions for
them, and several times as slowly if it has not. Nobody can know this from a name, so each candidate is timed
once against float32 in the form in which it will be used. What the processor has no instructions for is not
tried, a candidate that loses its first product is not tried again, and what was found is remembered for this
machine in the cache folder.

A search stays exact whatever is chosen: low precision only proposes, with a proven bound on its error.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import torch

from bilex.core.errors import BilexError
from bilex.core.files import write_json
from bilex.core.machine import RESTRAINTS, cache_folder, processor

if TYPE_CHECKING:
    from bilex.search.int8_tiles import Kind

Job = Literal["search", "matching", "tuning", "encoding"]
JOBS: tuple[Job, ...] = get_args(Job)

_MEMORY = "arithmetic.json"
_FORMAT = 4
_PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.int8}
_BFLOAT16_INSTRUCTIONS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
_ROWS, _COLUMNS, _WIDTH = 1024, 512, 320  # a search's blocks: how a product is made depends on its shape
_TOKENS = 128
_CHECKED_ROWS = 32
_TIMES = 3
_used: set[Job] = set()
# What proposals in low precision cost a query beside their product, since their bounds are wider and more
# keys must be looked at: as much as the float32 product with so many keys, and so many more for each
# neighbour that is wanted (two families of vectors, with AVX2 and with VNNI; research/performance.md).
_LOOKS = {"int8": (2_000, 60), "bfloat16": (500, 20)}


class _Candidate(NamedTuple):
    """A precision that a job may compute in, and what the rest of the job takes longer with it.

    The latter is in times of the float32 product.
    """

    name: str
    handicap: float


_CANDIDATES: dict[Job, tuple[_Candidate, ...]] = {
    "search": (_Candidate("int8", 0.05), _Candidate("bfloat16", 0.05)),
    "matching": (_Candidate("int8", 0.05), _Candidate("bfloat16", 0.05)),
    "tuning": (_Candidate("bfloat16", 0.05),),
    "encoding": (_Candidate("bfloat16", 0.05),),
}


@dataclass(frozen=True)
class Outcome:
    """What a job computes in, and why.

    Attributes:
        precision: "float32", "bfloat16" or "int8".
        ratios: For each precision that was timed, the time of its product over float32's.
    """

    precision: str
    ratios: dict[str, float]

    @property
    def dtype(self) -> torch.dtype:
        """The precision as torch names it."""
        return _PRECISIONS[self.precision]


def fastest(job: Job) -> torch.dtype:
    """The precision in which a job is fastest on this CPU."""
    _used.add(job)
    return outcome(job).dtype


def fastest_search(keys: int, neighbours: int, directions: int = 1) -> torch.dtype:
    """The precision in which a search among so many keys is fastest on this CPU.

    Args:
        keys: How many keys each query is compared with.
        neighbours: How many of them are wanted.
        directions: 2 if the same products also serve the keys as queries.
    """
    _used.add("search")
    costs = {"float32": float(keys)}
    for name, handicap in _CANDIDATES["search"]:
        if name in (ratios := outcome("search").ratios):
            of_a_look, of_a_neighbour = _LOOKS[name]
            look = directions * (of_a_look + of_a_neighbour * neighbours)
            costs[name] = (ratios[name] + handicap) * keys + look
    return _PRECISIONS[min(costs, key=costs.__getitem__)]


def search_precisions() -> list[torch.dtype]:
    """The precisions that searches of some size may choose on this CPU."""
    timed = outcome("search").ratios
    others = [name for name, _ in _CANDIDATES["search"] if name in timed]
    return [_PRECISIONS[name] for name in ("float32", *others)]


@lru_cache(maxsize=len(JOBS))
def outcome(job: Job) -> Outcome:
    """What was found for a job on this machine: remembered from an earlier process, or timed now."""
    known = _remembered()
    if job in known:
        return known[job]
    found = _timed(job)
    _remember(job, found)
    return found


def outcomes() -> dict[Job, Outcome]:
    """What was found for every job."""
    return {job: outcome(job) for job in JOBS}


def used() -> dict[str, str]:
    """The precision of each job that this process has asked for so far, for the record."""
    return {job: outcome(job).precision for job in JOBS if job in _used}


@lru_cache(maxsize=1)
def int8_limit() -> int:
    """The largest size of 8-bit numbers whose products are summed right on this CPU; 0 if none are.

    Processors without instructions of their own for it add two products in 16 bits, which holds any sum only
    where one side stays within 63.
    """
    for limit in (127, 63):
        rows = torch.full((_CHECKED_ROWS, _WIDTH), limit, dtype=torch.int8)
        rows[::2] = -limit
        rows[:, ::3] *= -1
        try:
            found = multiply(rows, rows, torch.empty(_CHECKED_ROWS, _CHECKED_ROWS, dtype=torch.int32))
        except (AttributeError, RuntimeError, TypeError):
            return 0
        if torch.equal(found.double(), rows.double() @ rows.double().T):
            return limit
    return 0


def tile_kind() -> Kind | None:
    """The instructions by which 8-bit products are looked at as they come out; None if torch multiplies."""
    from bilex.search import int8_tiles

    kind = int8_tiles.kind()
    return kind if kind is not None and int8_limit() <= int8_tiles.LARGEST[kind] else None


def cells(dtype: torch.dtype) -> torch.dtype:
    """In what the products of rows come out."""
    return torch.int32 if dtype == torch.int8 else dtype


def multiply(rows: torch.Tensor, others: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """The products of all rows with all others, both in one precision; 8-bit ones are summed in 32 bits."""
    if rows.dtype == torch.int8:
        return torch._int_mm(rows, others.T, out=out)
    return torch.mm(rows, others.T, out=out)


def _timed(job: Job) -> Outcome:
    """Time the candidates that the processor has instructions for against float32."""
    wanted = [candidate for candidate in _CANDIDATES[job] if _supported(candidate.name)]
    if not wanted:
        return Outcome("float32", {})
    trial = {"search": _block, "matching": _looked_at}.get(job, _layer)
    with _threads(torch.get_num_threads() if trial is _layer else 1):
        reference = _best_time(trial(torch.float32), math.inf)
        ratios = {
            each.name: _best_time(trial(_PRECISIONS[each.name]), reference) / reference for each in wanted
        }
    best = min(wanted, key=lambda each: ratios[each.name] + each.handicap)
    won = ratios[best.name] + best.handicap < 1
    return Outcome(best.name if won else "float32", {name: round(ratio, 3) for name, ratio in ratios.items()})


def _supported(precision: str) -> bool:
    if precision == "int8":
        return int8_limit() > 0
    return bool(processor().features & _BFLOAT16_INSTRUCTIONS)


def _block(dtype: torch.dtype) -> Callable[[], object]:
    """The product of a search: one block of rows with one block of others."""
    rows, others = torch.ones(_ROWS, _WIDTH).to(dtype), torch.ones(_COLUMNS, _WIDTH).to(dtype)
    out = torch.empty(_ROWS, _COLUMNS, dtype=cells(dtype))
    return lambda: multiply(rows, others, out)


def _looked_at(dtype: torch.dtype) -> Callable[[], object]:
    """The product of matching: that of a search, or of tiles whose products are looked at as they come."""
    if dtype != torch.int8 or (kind := tile_kind()) is None:
        return _block(dtype)
    import numpy as np

    from bilex.search import int8_tiles

    tiles = int8_tiles.empty(_COLUMNS, _WIDTH, kind)
    queries = int8_tiles.filled_up(np.zeros((_ROWS, _WIDTH), np.int8), kind)
    out = np.empty((len(tiles), len(queries), int8_tiles.LANES), np.int32)
    int8_tiles.add_all(tiles, queries, out)  # compiled here, not while the clock runs
    return lambda: int8_tiles.add_all(tiles, queries, out)


def _layer(dtype: torch.dtype) -> Callable[[], object]:
    """The product of a language model: a layer's widest matrix, there and back."""
    layer = torch.nn.Linear(384, 1536)
    tokens = torch.ones(_TOKENS, 384, requires_grad=True)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            layer(tokens).sum().backward()

    return step


def _best_time(trial: Callable[[], object], to_beat: float) -> float:
    """The shortest time of a few tries; the first two are the last if neither comes near `to_beat`."""
    best = math.inf
    for number in range(_TIMES + 1):
        started = time.perf_counter()
        trial()
        best = min(best, time.perf_counter() - started)
        if number == 1 and best > 1.5 * to_beat:  # the very first also sets things up
            break
    return best


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let torch use so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@lru_cache(maxsize=1)
def _machine() -> str:
    """All that the outcomes depend on, as one key."""
    cpu = processor()
    facts: list[Any] = [_FORMAT, cpu.name, sorted(cpu.features), torch.get_num_threads(), torch.__version__]
    facts += [os.environ.get(name) for name in RESTRAINTS]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]


def _remembered() -> dict[Job, Outcome]:
    """What earlier processes found on this machine; nothing where the file is not there or not ours."""
    entry = _stored().get(_machine(), {})
    found: dict[Job, Outcome] = {}
    for job in JOBS:
        kept = entry.get(job) if isinstance(entry, dict) else None
        allowed = {"float32", *(candidate.name for candidate in _CANDIDATES[job])}
        if (
            isinstance(kept, dict)
            and kept.get("precision") in allowed
            and isinstance(kept.get("ratios"), dict)
        ):
            found[job] = Outcome(kept["precision"], kept["ratios"])
    return found


def _stored() -> dict[str, Any]:
    try:
        stored = json.loads(_path().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return stored if isinstance(stored, dict) else {}


def _remember(job: Job, found: Outcome) -> None:
    """Keep an outcome beside the others; that it cannot be kept costs only a probe next time."""
    stored = _stored()
    entry = stored.get(_machine())
    kept = {
        **(entry if isinstance(entry, dict) else {}),
        job: {"precision": found.precision, "ratios": found.ratios},
    }
    try:
        write_json(_path(), {**stored, _machine(): kept})
    except BilexError:
        return


def _path() -> Path:
    return cache_folder() / _MEMORY

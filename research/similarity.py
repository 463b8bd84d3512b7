"""The two CSLS neighbourhood terms of Finnish-Russian, against the bare product and rival ways.

    python -m research.similarity DATA                     all 200k × 200k, CPU or GPU
    python -m research.similarity DATA --words 50000 --rivals

"bare product" is the float32 matrix product in blocks, on all cores, its results thrown away. faiss
and torch.topk answer one direction at a time, so theirs is the sum of both; with --rival-queries they
answer a part of the queries and the time is scaled up.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from bilex.core.device import resolve_device
from bilex.search import neighbourhoods
from bilex.search.cpu import CpuSearch
from bilex.search.low_precision.operands import int8_pays
from bilex.search.search import Floats
from research.packed import read_vectors


def bare_product(source: torch.Tensor, target: torch.Tensor, rows: int = 2048, columns: int = 8192) -> None:
    """All products, block by block, kept nowhere."""
    out = torch.empty(rows * columns, dtype=source.dtype, device=source.device)
    for i in range(0, len(source), rows):
        left = source[i : i + rows]
        for j in range(0, len(target), columns):
            right = target[j : j + columns]
            torch.mm(left, right.T, out=out[: len(left) * len(right)].view(len(left), len(right)))


def torch_topk(queries: torch.Tensor, keys: torch.Tensor, k: int, rows: int = 1024) -> None:
    """Blockwise torch.topk of full score rows."""
    for i in range(0, len(queries), rows):
        (queries[i : i + rows] @ keys.T).topk(k, dim=1).values.mean(1)


def faiss_flat(queries: Floats, keys: Floats, k: int) -> None:
    """Faiss's exact inner-product index."""
    import faiss

    index = faiss.IndexFlatIP(keys.shape[1])
    index.add(np.ascontiguousarray(keys))
    index.search(np.ascontiguousarray(queries), k)


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """Wall time of one call."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def main(arguments: list[str] | None = None) -> None:
    """Print one JSON object with all times and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--words", type=int, default=200_000)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--rival-queries", type=int, default=4096)
    options = parser.parse_args(arguments)
    device = resolve_device(options.device)
    source, target = (
        np.asarray(read_vectors(options.data, lang, options.words).vectors) for lang in ("fi", "ru")
    )
    x, y = torch.from_numpy(source).to(device), torch.from_numpy(target).to(device)
    neighbourhoods(x[:3000], y[:3000], options.k, device=device)
    if device.type == "cpu":
        # Loops for the precision of the whole search are compiled before the clock starts.
        int8 = int8_pays(len(source), len(target), options.k)
        CpuSearch(target[:3000], None, int8).top_k(source[:3000], options.k)
    bare_product(x[:4096], y[:8192])
    result = {"words": options.words, "device": str(device), "threads": torch.get_num_threads()}
    times = {"bare float32 product": seconds(lambda: bare_product(x, y), device)}
    times["bilex, both directions"] = seconds(lambda: neighbourhoods(x, y, options.k, device=device), device)
    if options.rivals:
        part = options.rival_queries
        scale = 2 * len(source) / part
        times["torch.topk"] = scale * seconds(lambda: torch_topk(x[:part], y, options.k), device)
        if device.type == "cpu":
            times["faiss IndexFlatIP"] = scale * seconds(
                lambda: faiss_flat(source[:part], target, options.k), device
            )
    bare = times["bare float32 product"]
    result["seconds"] = {name: round(value, 3) for name, value in times.items()}
    result["ratio to bare product"] = {name: round(value / bare, 3) for name, value in times.items()}
    if device.type == "cuda":
        result["peak_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Golden results: P@1 of methods and presets per setting, as JSON lines.

python research/golden.py DATA OUT.jsonl SHARD/N SECONDS
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from bilex.aligners import get_method
from bilex.evaluation import evaluate
from bilex.model.space import Space
from research.packed import read_dictionary, read_vectors

FIRST = ("en-ru", "en-fi", "fi-ru", "en-fr", "fi-fr", "ru-fr")
PAIRS = (*FIRST, "europarl/de-it", "europarl/it-fr", "europarl/de-fr")
METHODS = (
    *(("c1", preset) for preset in ("paper", "best", "careful", "quick")),
    *((name, None) for name in ("procrustes", "vecmap-supervised", "rcsls", "fipp", "vecmap-semi")),
)
WORDS = 40_000


def main() -> None:
    """Fit and score this shard's share of all methods and settings until the time is up."""
    data, out, shard, limit = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    first, step = map(int, shard.split("/"))
    started = time.monotonic()
    settings = [(pair, size) for pair in PAIRS for size in ("5k", "1k")]
    for (name, preset), (place, size) in [(m, s) for m in METHODS for s in settings][first::step]:
        if time.monotonic() - started > limit:
            return
        family, _, pair = place.rpartition("/")
        source, target = (read_vectors(data / family, code, WORDS) for code in pair.split("-"))
        seeds, test = (read_dictionary(data, pair, part) for part in (f"train.freq.{size}", "test.freq.2k"))
        chosen: dict[str, Any] = {"preset": preset} if preset else {}
        aligner = get_method(name)(**chosen).fit(source, target, seeds)
        found = evaluate(Space.from_aligner(aligner, source, target), test)
        figures = [
            round(100 * part.metrics[kind]["p@1"], 2)  # type: ignore[index]
            for part in (found.forward, found.backward)
            for kind in ("nn", "csls")
        ]
        row = {"name": f"{name} {preset}" if preset else name, "setting": f"{place}:{size}", "p@1": figures}
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()

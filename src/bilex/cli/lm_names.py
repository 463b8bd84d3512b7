"""`--lm NAME`: a name that leads nowhere is refused before any file is read."""

from __future__ import annotations

import re
from pathlib import Path

from bilex.core.errors import BilexError, nearest_name
from bilex.encoders.presets import OFFLINE_ENCODER, PRESETS

_HUB_ADDRESS = re.compile(r"https?://(?:www\.)?huggingface\.co/([\w.-]+/[\w.-]+|[\w.-]+)/?")


def check_lm(name: str) -> None:
    """Make sure that a language model can be had.

    Args:
        name: What the user gave: a hub name, a folder, or the encoder that needs no hub.

    Raises:
        BilexError: It is an address, a folder that is not there, or a name that the hub does not know.
    """
    if "://" in name:
        known = _HUB_ADDRESS.match(name)
        hint = f"--lm {known[1]}" if known else "--lm intfloat/multilingual-e5-small"
        raise BilexError(f"--lm {name}: an address cannot be opened; give the model's name alone, as {hint}.")
    if name == OFFLINE_ENCODER or Path(name).is_dir():
        return
    if _is_path(name):
        raise BilexError(
            f"--lm {name}: there is no such folder; check the path, or give a name on the Hugging Face hub."
        )
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        raise BilexError(f"--lm {name}: is neither a folder here nor a name that the hub could have.")
    _ask_hub(name)


def _is_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or name.endswith("/") or "\\" in name or name.count("/") > 1


def _ask_hub(name: str) -> None:
    """Fetch the model's few lines of configuration, from the hub or from what was fetched earlier."""
    try:
        import transformers
    except ImportError as error:
        raise BilexError("language models need an extra: run pip install 'bilex[lm]'.") from error
    try:
        transformers.AutoConfig.from_pretrained(name)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        near = "" if name in PRESETS else nearest_name(name, PRESETS)
        raise BilexError(
            f"--lm {name}: is no folder here and cannot be had from the Hugging Face hub; check the name and "
            f"the network, or use {OFFLINE_ENCODER}, which needs none.{near}"
        ) from error

"""`--lm NAME`: a name that leads nowhere is refused before any file is read."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import urllib.parse
from pathlib import Path

from bilex.core.errors import BilexError, nearest_name
from bilex.encoders.presets import OFFLINE_ENCODER, PRESETS

_HUB_ADDRESS = re.compile(r"https?://(?:www\.)?huggingface\.co/([\w.-]+/[\w.-]+|[\w.-]+)/?")
_HUB_SECONDS = 5


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
    """Fetch the model's few lines of configuration: what was fetched earlier, or else from the hub."""
    try:
        import transformers
    except ImportError as error:
        raise BilexError("language models need an extra: run pip install 'bilex[lm]'.") from error
    failures = (OSError, ValueError, KeyError, RuntimeError)
    with contextlib.suppress(*failures):
        transformers.AutoConfig.from_pretrained(name, local_files_only=True)
        return
    hub = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    address = urllib.parse.urlsplit(hub)
    try:  # once, where the library would try for a minute
        socket.create_connection((address.hostname or "", address.port or 443), _HUB_SECONDS).close()
    except OSError as error:
        raise BilexError(
            f"--lm {name}: the Hugging Face hub cannot be reached; check the network, give the path of a "
            f"folder that holds the model, or use {OFFLINE_ENCODER}, which needs no hub."
            f"{nearest_name(name, [OFFLINE_ENCODER])}"
        ) from error
    try:
        transformers.AutoConfig.from_pretrained(name)
    except failures as error:
        near = "" if name in PRESETS else nearest_name(name, PRESETS)
        raise BilexError(
            f"--lm {name}: the Hugging Face hub has no such model, or does not hand it out; check the name, "
            f"or use {OFFLINE_ENCODER}, which needs no hub.{near}"
        ) from error

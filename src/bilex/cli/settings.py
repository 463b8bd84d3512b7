"""`--set NAME=VALUE` and `--lm NAME`: values that lead nowhere are refused before any file is read."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import types
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from bilex.core.errors import BilexError, nearest_name
from bilex.encoders.settings import OFFLINE_ENCODER, PRESETS

if TYPE_CHECKING:
    from bilex.aligners import Aligner

_TRUTHS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_HUB_ADDRESS = re.compile(r"https?://(?:www\.)?huggingface\.co/([\w.-]+/[\w.-]+|[\w.-]+)/?")
_HUB_SECONDS = 5


def parse_settings(method: type[Aligner], given: Sequence[str]) -> dict[str, Any]:
    """Turn NAME=VALUE texts into keyword arguments of a method."""
    known = method.settings_fields()
    kinds = get_type_hints(method)
    settings = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise BilexError(f"--set {text}: write it as NAME=VALUE.")
        if name not in known:
            raise BilexError(
                f"--set {text}: method '{method.name}' has no setting '{name}'; "
                f"it has {', '.join(known)}.{nearest_name(name, known)}"
            )
        try:
            settings[name] = _typed(value.strip(), kinds[name])
        except ValueError as error:
            raise BilexError(f"--set {text}: {error}.") from error
    return settings


def _typed(text: str, kind: Any) -> Any:
    """The value of a type that a text stands for."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if type(None) in parts and text.lower() in ("none", "null"):
            return None
        return _first_typed(text, sorted(parts, key=lambda part: part is str))
    if origin is tuple:
        return tuple(_typed(part.strip(), parts[0]) for part in text.split(",") if part.strip())
    if origin is Literal:
        values: dict[str, Any] = {str(part): part for part in parts}
        wrong = f"not one of {', '.join(values)}"
    elif kind is bool:
        values, wrong, text = _TRUTHS, "neither true nor false", text.lower()
    elif kind not in (int, float):
        return text
    else:
        wrong = "not a whole number" if kind is int else "not a number"
        try:
            values = {text: kind(text.replace("_", ""))}
        except ValueError:
            values = {}
    if text not in values:
        raise ValueError(f"'{text}' is {wrong}")
    return values[text]


def _first_typed(text: str, kinds: list[Any]) -> Any:
    """The value of the first type that fits."""
    faults = []
    for kind in kinds:
        if kind is not type(None):
            try:
                return _typed(text, kind)
            except ValueError as fault:
                faults.append(str(fault))
    raise ValueError(" and ".join(faults))


def check_lm(name: str) -> None:
    """Make sure that a language model can be had."""
    if "://" in name:
        known = _HUB_ADDRESS.match(name)
        hint = f"--lm {known[1]}" if known else "--lm intfloat/multilingual-e5-small"
        raise BilexError(f"--lm {name}: an address cannot be opened; give the model's name alone, as {hint}.")
    if name == OFFLINE_ENCODER or Path(name).is_dir():
        return
    if name.startswith((".", "/", "~")) or name.endswith("/") or "\\" in name or name.count("/") > 1:
        raise BilexError(
            f"--lm {name}: there is no such folder; check the path, or give a name on the Hugging Face hub."
        )
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        raise BilexError(f"--lm {name}: is neither a folder here nor a name that the hub could have.")
    _ask_hub(name)


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
    address = urllib.parse.urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
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

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
from bilex.encoders.presets import OFFLINE_ENCODER, PRESETS

if TYPE_CHECKING:
    from bilex.aligners import Aligner

_TRUE, _FALSE, _NONE = ("true", "yes", "on", "1"), ("false", "no", "off", "0"), ("none", "null")


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
            settings[name] = typed(value.strip(), kinds[name])
        except ValueError as error:
            raise BilexError(f"--set {text}: {error}.") from error
    return settings


def typed(text: str, kind: Any) -> Any:
    """The value that a text stands for."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _one_of(text, get_args(kind))
    if origin is Literal:
        return _choice(text, get_args(kind))
    if origin is tuple:
        return tuple(typed(part.strip(), get_args(kind)[0]) for part in text.split(",") if part.strip())
    if kind is bool:
        return _truth(text)
    if kind in (int, float):
        try:
            return kind(text.replace("_", ""))
        except ValueError:
            wanted = "a whole number" if kind is int else "a number"
            raise ValueError(f"'{text}' is not {wanted}") from None
    return text


def _one_of(text: str, kinds: tuple[Any, ...]) -> Any:
    if type(None) in kinds and text.lower() in _NONE:
        return None
    kinds_given = [kind for kind in kinds if kind is not type(None)]
    faults = []
    for kind in sorted(kinds_given, key=lambda kind: kind is str):
        try:
            return typed(text, kind)
        except ValueError as fault:
            faults.append(str(fault))
    raise ValueError(" and ".join(faults))


def _choice(text: str, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if text == str(choice):
            return choice
    raise ValueError(f"'{text}' is not one of {', '.join(map(str, choices))}")


def _truth(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(f"'{text}' is neither true nor false")


_HUB_ADDRESS = re.compile(r"https?://(?:www\.)?huggingface\.co/([\w.-]+/[\w.-]+|[\w.-]+)/?")
_HUB_SECONDS = 5


def check_lm(name: str) -> None:
    """Make sure that a language model can be had."""
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

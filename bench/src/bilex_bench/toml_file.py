"""TOML files as pydantic models; a mistake is one sentence with its line and the nearest valid name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from bilex.core.errors import BilexError, nearest_name

Place = tuple[str | int, ...]  # the keys and indices that lead to a value
Model = TypeVar("Model", bound=BaseModel)

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_KEYS = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_KEYS})\s*\]\]?")
_ASSIGNMENT = re.compile(rf"\s*({_KEYS})\s*=")


class Strict(BaseModel):
    """A table without other keys than its fields, and without implicit conversions."""

    model_config = ConfigDict(strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, content: Any) -> Any:
        for key in content if isinstance(content, Mapping) else ():
            if key not in cls.model_fields:
                listed = ", ".join(cls.model_fields)
                near = nearest_name(key, cls.model_fields)
                fault = PydanticCustomError(
                    "unknown_key", "{message}", {"message": f"it has {listed}.{near}"}
                )
                details = InitErrorDetails(type=fault, loc=(key,), input=content)
                raise ValidationError.from_exception_data(cls.__name__, [details])
        return content


def typed_values(given: Mapping[str, Any], kinds: Mapping[str, Any]) -> dict[str, Any]:
    """Check values against annotations, in the order of the annotations."""
    fields: dict[str, Any] = {name: (kind, None) for name, kind in kinds.items()}
    found = create_model("settings", __base__=Strict, **fields).model_validate(dict(given))
    return {name: getattr(found, name) for name in kinds if name in given}


class TomlFile:
    """A TOML text with the lines of its tables and keys, which `tomllib` does not report."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        try:
            self._content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise BilexError(f"{name}: is not valid TOML ({error}); put that right.") from error
        self._lines = _lines(text)

    @classmethod
    def read(cls, path: Path) -> TomlFile:
        """Read a file."""
        try:
            return cls(str(path), path.read_text(encoding="utf-8-sig"))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise BilexError(f"{path}: cannot be read ({reason}).") from error

    def load(self, model: type[Model]) -> Model:
        """The content as a model; its first mistake is an error."""
        try:
            return model.model_validate(self._content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise self.error(_sentence(first), *first["loc"]) from None

    def where(self, *place: str | int) -> str:
        """File and line of a table or key, or of the nearest table around it."""
        while place:
            if place in self._lines:
                return f"{self._name}, line {self._lines[place]}"
            place = place[:-1]
        return self._name

    def error(self, message: str, *place: str | int) -> BilexError:
        """An error at a table or key."""
        return BilexError(f"{self.where(*place)}: {message}")


def _sentence(fault: ErrorDetails) -> str:
    """An error of pydantic, with the value and the names that would be valid."""
    *table, key = fault["loc"] or ("",)
    names = ".".join(part for part in table if isinstance(part, str))
    heading = f"[[{names}]]" if names and isinstance(table[-1], int) else f"[{names}]"
    where = f"in {heading}" if names else "at the top level"
    if fault["type"] == "unknown_key":
        return f"there is no key '{key}' {where}; {fault['msg']}"
    if fault["type"] == "missing":
        return f"'{key}' is missing {where}, which has {', '.join(fault['input'])}."
    if fault["type"] == "list_type":
        name = ".".join(part for part in fault["loc"] if isinstance(part, str))
        return f"'{key}' must be an array of tables; head each with [[{name}]]."
    advice = fault["msg"].removeprefix("Value error, ")
    end = "" if advice.endswith(("?", ".")) else "."
    value = fault["input"]
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    name = key if isinstance(key, str) else f"{table[-1]}[{key}]"
    return f"'{name}' is {shown}; {advice[0].lower()}{advice[1:]}{end}"


def _lines(text: str) -> dict[Place, int]:
    """The line numbers of the tables and keys of a valid TOML text."""
    found: dict[Place, int] = {}
    here: Place = ()
    counts: dict[Place, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        header, assignment = _HEADER.match(line), _ASSIGNMENT.match(line)
        if header:
            here = ()
            parts = _parts(header[2])
            for depth, part in enumerate(parts, 1):
                here = (*here, part)
                if depth == len(parts) and header[1] == "[[":
                    counts[here] = counts.get(here, -1) + 1
                if here in counts:  # an array of tables: the latest of them
                    found.setdefault(here, number)
                    here = (*here, counts[here])
                found.setdefault(here, number)
        elif assignment:
            place = here
            for part in _parts(assignment[1]):
                place = (*place, part)
                found.setdefault(place, number)
    return found


def _parts(keys: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_KEY, keys)]

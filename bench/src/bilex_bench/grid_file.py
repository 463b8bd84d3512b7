"""A grid from its TOML file; what is wrong is reported with its line and the nearest valid name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_type_hints

import pydantic
from pydantic_core import ErrorDetails

from bilex.aligners import get_method
from bilex.core.errors import BilexError, nearest_name
from bilex.encoders.settings import TuningSettings, lightened
from bilex_bench.grid import (
    ALL,
    Common,
    DataEntry,
    Grid,
    GridFile,
    LmEntry,
    MethodEntry,
    Restricted,
    Strict,
)

Place = tuple[str | int, ...]

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_KEYS = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_KEYS})\s*\]\]?")
_ASSIGNMENT = re.compile(rf"\s*({_KEYS})\s*=")

# In the order in which a reader meets them.
_NAMES = (
    "quick",
    "paper-main",
    "paper-panlex",
    "paper-c2-over-others",
    "paper-lms",
    "paper-ablation",
    "paper-lambda",
    "shared-data",
    "no-seeds",
)
_SETTINGS_OF_GRID = ("device", "seed")
_TABLES: dict[tuple[str, ...], type[Strict]] = {
    (): GridFile,
    ("grid",): Common,
    ("data",): DataEntry,
    ("method",): MethodEntry,
    ("method", "lm"): LmEntry,
}


def read_grid(name: str | Path) -> Grid:
    """A ready grid, or that of a file; see `Grid.read`."""
    title, text, folder = grid_text(name)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BilexError(f"{name}: is not valid TOML ({error}); put that right.") from error
    return _Reader(str(name), content, Lines(text)).grid(title, folder)


class _Reader:
    """One file on its way to a grid."""

    def __init__(self, file: str, content: Mapping[str, Any], lines: Lines) -> None:
        self._file, self._content, self._lines = file, content, lines

    def grid(self, title: str, folder: Path) -> Grid:
        """The whole grid, everything in it checked."""
        read = self._checked(lambda: GridFile.model_validate(self._content), ())
        common = read.grid
        if not read.data:
            raise self._fault('the grid has no data; write [data.NAME] with path = "FOLDER".')
        if common.seeds is None and not all(entry.seeds for entry in read.data.values()):
            fault = '\'seeds\' is missing from [grid]; name seed dictionaries, such as ["5k", "1k"].'
            raise self._fault(fault, "grid")
        if not read.method:
            raise self._fault('the grid has no methods; write [[method]] with name = "c1", say.')
        self._check_names(read)
        return Grid(
            name=title,
            common=common,
            data={name: _from(folder, entry) for name, entry in read.data.items()},
            methods=tuple(self._with_settings(entry, n) for n, entry in enumerate(read.method)),
            where=self._where,
        )

    def _check_names(self, read: GridFile) -> None:
        """See that restrictions name pairs and seeds of the grid; any will do where the grid takes all."""
        entries = list(read.data.values())
        own: Place = ("grid",)
        known = {
            "pairs": dict.fromkeys([*read.grid.pairs, *(p for e in entries for p in e.pairs or ())]),
            "seeds": dict.fromkeys([*(read.grid.seeds or ()), *(s for e in entries for s in e.seeds or ())]),
        }
        tables: list[tuple[Restricted, Place]] = []
        for number, method in enumerate(read.method):
            tables.append((method, ("method", number)))
            tables += [(lm, ("method", number, "lm", place)) for place, lm in enumerate(method.lm)]
        named = [(getattr(e, key) or (), key, (*place, key)) for e, place in tables for key in known]
        named.append((read.grid.sample_pairs or (), "pairs", (*own, "sample_pairs")))
        for names, key, place in named:
            for name in names:
                if name not in known[key] and ALL not in known[key]:
                    raise self._fault(
                        f"'{name}' is not among the grid's {', '.join(known[key])}."
                        f"{nearest_name(name, known[key])}",
                        *place,
                    )

    def _with_settings(self, entry: MethodEntry, number: int) -> MethodEntry:
        """A method with its own settings and its models' tuning checked, defaults left out."""
        method, place = get_method(entry.name), ("method", number, "settings")
        kinds, defaults = get_type_hints(method), method.settings_fields()
        kinds = {name: kinds[name] for name in defaults if name not in _SETTINGS_OF_GRID}
        settings = self._values(entry.settings, kinds, place)
        settings = {name: value for name, value in settings.items() if value != defaults[name]}
        self._made(lambda: method(**settings), place)
        lms = [self._with_tuning(lm, (*place[:2], "lm", n)) for n, lm in enumerate(entry.lm)]
        return entry.model_copy(update={"settings": settings, "lm": lms})

    def _with_tuning(self, lm: LmEntry, place: Place) -> LmEntry:
        if not lm.tuning:
            return lm
        if not lm.tune:
            fault = "'tuning' has no meaning with tune = false; take one of them out."
            raise self._fault(fault, *place, "tuning")
        hints = get_type_hints(TuningSettings)
        kinds = {"preset": Literal["paper", "light", "demo"]} | {
            field.name: hints[field.name] for field in fields(TuningSettings)
        }
        tuning = self._values(lm.tuning, kinds, (*place, "tuning"))
        preset = tuning.pop("preset", "paper")
        self._made(lambda: replace(lightened(TuningSettings(), preset), **tuning), (*place, "tuning"))
        return lm.model_copy(update={"tuning": ({} if preset == "paper" else {"preset": preset}) | tuning})

    def _values(self, given: Mapping[str, Any], kinds: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """Given values as annotations want them, in the order of the annotations."""
        model = pydantic.create_model(  # type: ignore[call-overload]
            "settings", __base__=Strict, **{name: (kind, None) for name, kind in kinds.items()}
        )
        found = self._checked(lambda: model.model_validate(dict(given)), place, tuple(kinds))
        return {name: getattr(found, name) for name in kinds if name in given}

    def _made(self, make: Callable[[], object], place: Place) -> None:
        """Let a class refuse its own settings."""
        try:
            make()
        except BilexError as error:
            raise self._fault(str(error), *place) from None

    def _checked(self, check: Callable[[], Any], place: Place, known: tuple[str, ...] | None = None) -> Any:
        """What a model makes of its content; its first complaint as one sentence."""
        try:
            return check()
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            at = (*place, *first["loc"])
            raise self._fault(self._sentence(first, at, known), *at) from None

    def _sentence(self, fault: ErrorDetails, place: Place, known: tuple[str, ...] | None) -> str:
        """One complaint of pydantic, with what is there and the names that there could be."""
        key, table = place[-1], place[:-1]
        if fault["type"] == "extra_forbidden":
            names = known or tuple(_TABLES[_table_of(table)].model_fields)
            return (
                f"there is no key '{key}' in {_title(table)}; it has {', '.join(names)}."
                f"{nearest_name(str(key), names)}"
            )
        if fault["type"] == "missing":
            return f"'{key}' is missing from {_title(table)}, which has {', '.join(fault['input'])}."
        if fault["type"] == "list_type":
            name = ".".join(part for part in place if isinstance(part, str))
            return f"'{key}' must be an array of tables; head each with [[{name}]]."
        advice = fault["msg"].removeprefix("Value error, ")
        end = "" if advice.endswith(("?", ".")) else "."
        return f"'{key}' is {_shown(fault['input'])}; {advice[0].lower()}{advice[1:]}{end}"

    def _where(self, *place: str | int) -> str:
        """File and line of a table or of one of its keys."""
        line = self._lines.of(place)
        return self._file if line is None else f"{self._file}, line {line}"

    def _fault(self, message: str, *place: str | int) -> BilexError:
        return BilexError(f"{self._where(*place)}: {message}")


def _from(folder: Path, entry: DataEntry) -> DataEntry:
    """A data set whose paths start at the folder of the grid's file."""
    given = {"path": entry.path, "vectors": entry.vectors}
    paths = {name: str(folder / Path(path).expanduser()) for name, path in given.items() if path is not None}
    return entry.model_copy(update=paths)


def _table_of(place: Place) -> tuple[str, ...]:
    names = tuple(part for part in place if isinstance(part, str))
    return names[:1] if names[:1] == ("data",) else names


def _title(place: Place) -> str:
    names = ".".join(part for part in place if isinstance(part, str))
    if not names:
        return "a grid"
    return f"[[{names}]]" if isinstance(place[-1], int) else f"[{names}]"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    return str(value).lower() if isinstance(value, bool) else str(value)


def ready_grids() -> dict[str, str]:
    """What each ready grid is for, in one sentence, by name."""
    return {name: str(tomllib.loads(ready_text(name))["about"]) for name in _NAMES}


def ready_text(name: str) -> str:
    """The TOML text of a ready grid."""
    if name not in _NAMES:
        raise BilexError(
            f"there is no ready grid '{name}'; there are {', '.join(_NAMES)}.{nearest_name(name, _NAMES)}"
        )
    file = resources.files("bilex_bench") / "grids" / f"{name}.toml"
    if not file.is_file():
        raise BilexError(f"{file}: the grid is missing from this installation; install bilex again.")
    return file.read_text(encoding="utf-8")


def grid_text(name: str | Path) -> tuple[str, str, Path]:
    """A grid by name or file."""
    if str(name) in _NAMES:
        return str(name), ready_text(str(name)), Path()
    path = Path(name)
    if not path.exists():
        raise BilexError(
            f"{name}: there is neither such a file nor a ready grid of that name; ready are "
            f"{', '.join(_NAMES)}.{nearest_name(str(name), _NAMES)}"
        )
    try:
        return path.stem, path.read_text(encoding="utf-8-sig"), path.parent
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise BilexError(f"{name}: cannot be read ({reason}).") from error


class Lines:
    """Line numbers of the tables and keys of a valid TOML text, by place, which no reader of TOML reports."""

    def __init__(self, text: str) -> None:
        self._found: dict[Place, int] = {}
        here: Place = ()
        counts: dict[Place, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            header, assignment = _HEADER.match(line), _ASSIGNMENT.match(line)
            if header:
                here = self._entered(_parts(header[2]), counts, is_array=header[1] == "[[")
                for depth in range(1, len(here) + 1):
                    self._found.setdefault(here[:depth], number)
            elif assignment:
                place = here
                for part in _parts(assignment[1]):
                    place = (*place, part)
                    self._found.setdefault(place, number)

    def of(self, place: Place) -> int | None:
        """The line of a table or key, or of the nearest table around it."""
        while place:
            if place in self._found:
                return self._found[place]
            place = place[:-1]
        return None

    @staticmethod
    def _entered(parts: list[str], counts: dict[Place, int], *, is_array: bool) -> Place:
        """The place that a header opens; of an array of tables always the latest."""
        place: Place = ()
        for depth, part in enumerate(parts, 1):
            place = (*place, part)
            if depth == len(parts) and is_array:
                counts[place] = counts.get(place, -1) + 1
            if place in counts:
                place = (*place, counts[place])
        return place


def _parts(keys: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_KEY, keys)]

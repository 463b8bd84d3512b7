"""A grid from its TOML file, every key and value checked before anything runs."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, get_type_hints

from bilex.aligners import Aligner, get_method
from bilex.encoders.presets import DEFAULT_MIXING, TuningSettings, lightened
from bilex.errors import BilexError, nearest_name
from bilex_bench.grid import ALL, DataEntry, Grid, LmEntry, MethodEntry, Restriction
from bilex_bench.ready import grid_text
from bilex_bench.setups import Mixing
from bilex_bench.toml_tables import Lines, Table

_SETTINGS_OF_GRID = ("device", "seed")
_PRESET = "preset"


def read_grid(name: str | Path) -> Grid:
    """A ready grid, or that of a file; see `Grid.read`."""
    title, text, folder = grid_text(name)
    file = str(name)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BilexError(f"{file}: is not valid TOML ({error}); put that right.") from error
    top = Table(content, file, Lines(text))
    grid = _Reader(top, title, folder).grid()
    top.finish()
    return grid


class _Reader:
    """One grid on its way from tables to entries."""

    def __init__(self, top: Table, title: str, folder: Path) -> None:
        self._top = top
        self._title = title
        self._folder = folder
        self._pairs: tuple[str, ...] = ()
        self._seeds: tuple[str, ...] = ()

    def grid(self) -> Grid:
        """The whole grid."""
        about = self._top.take("about", str, "")
        common = self._top.table("grid")
        pairs, seeds = _texts(common, "pairs") or (ALL,), _texts(common, "seeds") or ()
        data = self._data()
        if not seeds and not all(entry.seeds for entry in data):
            raise common.fault(
                '\'seeds\' is missing from [grid]; name seed dictionaries, such as ["5k", "1k"].'
            )
        self._pairs = tuple(dict.fromkeys([*pairs, *(pair for entry in data for pair in entry.pairs or ())]))
        self._seeds = tuple(dict.fromkeys([*seeds, *(name for entry in data for name in entry.seeds or ())]))
        limit = common.take("limit", int | Literal["all"], 200_000)
        if limit != "all" and limit < 1:
            raise common.fault(f"'limit' is {limit}; give a number of words, or \"all\".", "limit")
        grid = Grid(
            name=self._title,
            about=about,
            data=data,
            methods=self._methods(),
            pairs=pairs,
            seeds=seeds,
            limit=None if limit == "all" else limit,
            seed=common.take("seed", int, 0),
            device=common.take("device", Literal["auto", "cpu", "cuda"], "auto"),
            sample_pairs=self._known(common, "sample_pairs", self._pairs) or (),
        )
        common.finish()
        return grid

    def _data(self) -> tuple[DataEntry, ...]:
        tables = self._top.table("data")
        entries = []
        for name in tables.names():
            table = tables.table(name)
            path, vectors = table.take("path", str, None), table.take("vectors", str, None)
            entries.append(
                DataEntry(
                    name=name,
                    path=None if path is None else self._folder / Path(path).expanduser(),
                    vectors=None if vectors is None else str(self._folder / Path(vectors).expanduser()),
                    pairs=_texts(table, "pairs"),
                    seeds=_texts(table, "seeds"),
                )
            )
            table.finish()
        if not entries:
            raise tables.fault('the grid has no data; write [data.NAME] with path = "FOLDER".')
        return tuple(entries)

    def _methods(self) -> tuple[MethodEntry, ...]:
        methods = tuple(self._method(table) for table in self._top.tables("method"))
        if not methods:
            self._top.finish()  # a misspelt [[method]] is told first
            raise self._top.fault('the grid has no methods; write [[method]] with name = "c1", say.')
        return methods

    def _method(self, table: Table) -> MethodEntry:
        name = table.take("name", str)
        try:
            method = get_method(name)
        except BilexError as error:
            raise table.fault(str(error), "name") from None
        label = table.take("label", str, name)
        entry = MethodEntry(
            name=name,
            label=label,
            settings=_settings(table, method),
            needs_seeds=method.needs_seeds,
            only=self._restriction(table),
            samples=table.take("samples", bool, False),
            lms=tuple(self._lm(part, label) for part in table.tables("lm")),
            where=table.where(),
        )
        table.finish()
        return entry

    def _lm(self, table: Table, label: str) -> LmEntry:
        tune = table.take("tune", bool, True)
        entry = LmEntry(
            name=table.take("name", str),
            label=table.take("label", str, f"C2 ({label})" if tune else f"{label}+{{lm}}"),
            tune=tune,
            tuning=_tuning(table, tune),
            mixing=_mixing(table),
            only=self._restriction(table),
            samples=table.take("samples", bool, False),
            where=table.where(),
        )
        table.finish()
        return entry

    def _restriction(self, table: Table) -> Restriction:
        return Restriction(
            pairs=self._known(table, "pairs", self._pairs), seeds=self._known(table, "seeds", self._seeds)
        )

    @staticmethod
    def _known(table: Table, key: str, known: tuple[str, ...]) -> tuple[str, ...] | None:
        """Names that must be among the grid's; any will do where the grid takes all."""
        names = _texts(table, key)
        for name in names or ():
            if name not in known and ALL not in known:
                raise table.fault(
                    f"'{name}' is not among the grid's {', '.join(known)}.{nearest_name(name, known)}", key
                )
        return names


def _texts(table: Table, key: str) -> tuple[str, ...] | None:
    """One text or several; None where the key is missing."""
    value = table.take(key, str | tuple[str, ...], None)
    if value is None:
        return None
    names = (value,) if isinstance(value, str) else value
    if not names:
        raise table.fault(f"'{key}' is an empty list; name something, or leave it out.", key)
    return tuple(dict.fromkeys(names))


def _settings(table: Table, method: type[Aligner]) -> dict[str, Any]:
    """The settings that differ from a method's defaults, so that what is equal looks equal."""
    given, kinds, defaults = table.table("settings"), get_type_hints(method), method.settings_fields()
    settings = {
        name: given.take(name, kinds[name], None) for name in defaults if name not in _SETTINGS_OF_GRID
    }
    given.finish()
    settings = {name: settings[name] for name in given.names() if settings[name] != defaults[name]}
    try:
        method(**settings)
    except BilexError as error:
        raise table.fault(str(error), "settings") from None
    return settings


def _tuning(table: Table, tune: bool) -> dict[str, Any]:
    given, kinds = table.table("tuning"), get_type_hints(TuningSettings)
    names = [field.name for field in fields(TuningSettings)]
    preset = given.take(_PRESET, Literal["paper", "light", "demo"], "paper")
    wishes = {name: given.take(name, kinds[name], None) for name in names}
    given.finish()
    if given.names() and not tune:
        raise table.fault("'tuning' has no meaning with tune = false; take one of them out.", "tuning")
    wishes = {name: wishes[name] for name in names if name in given.names()}
    try:
        replace(lightened(TuningSettings(), preset), **wishes)
    except BilexError as error:
        raise table.fault(str(error), "tuning") from None
    return ({} if preset == "paper" else {_PRESET: preset}) | wishes


def _mixing(table: Table) -> tuple[Mixing, ...]:
    kind = float | Literal["auto"]
    value = table.take("mixing", kind | tuple[kind, ...], DEFAULT_MIXING)  # type: ignore[valid-type]
    mixings: Sequence[Mixing] = value if isinstance(value, tuple) else (value,)
    for mixing in mixings:
        if mixing != "auto" and not 0 <= mixing <= 1:
            raise table.fault(f'λ is {mixing:g}; give a number from 0 to 1, or "auto".', "mixing")
    if not mixings:
        raise table.fault("'mixing' is an empty list; name a λ, or leave it out.", "mixing")
    return tuple(dict.fromkeys(mixings))

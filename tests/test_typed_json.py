"""Dataclasses survive JSON with their types, whichever version wrote them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from bilex.core.files import json_text
from bilex.core.typed_json import as_json, from_json, other_entries


@dataclass(frozen=True)
class Inner:
    share: float
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Other:
    models: list[str]


@dataclass(frozen=True)
class Outer:
    name: str
    ends: tuple[int, str] = (0, "")
    inner: Inner | None = None
    by_name: Mapping[str, Inner] = field(default_factory=dict)
    either: Inner | Other | None = None
    mixing: float | Literal["auto"] = "auto"
    sure: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    name: str = ""
    more: Mapping[str, Any] = other_entries()


FULL = Outer(
    "a",
    (3, "b"),
    Inner(0.5, ("x", "y")),
    {"en": Inner(1.0)},
    Other(["m"]),
    0.25,
    True,
    {"deep": [1, {"er": None}]},
)


@pytest.mark.parametrize("record", [FULL, Outer("a"), Outer("b", either=Inner(0.1))])
def test_everything_comes_back(record: Outer) -> None:
    assert from_json(Outer, json.loads(json_text(as_json(record)))) == record


def test_what_is_not_finite_comes_back_as_nan() -> None:
    stored = as_json(Inner(math.inf))
    assert stored["share"] is None
    assert math.isnan(from_json(Inner, stored).share)


def test_another_version_may_have_more_or_less() -> None:
    assert from_json(Outer, {"name": "a", "new": 1, "inner": {"share": 1, "newer": []}}) == Outer(
        "a", inner=Inner(1.0)
    )


def test_entries_without_a_field_are_kept_where_there_is_a_place_for_them() -> None:
    stored = {"name": "a", "rounds": 3, "history": [{"loss": 0.5}]}
    record = from_json(Stored, stored)
    assert record == Stored("a", {"rounds": 3, "history": [{"loss": 0.5}]})
    assert as_json(record) == stored


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ([], "Outer is no object"),
        ({}, "Outer has no name"),
        ({"name": 3}, "name is 3"),
        ({"name": "a", "sure": 1}, "sure is 1"),
        ({"name": "a", "ends": ["b", 3]}, "ends is 'b'"),
        ({"name": "a", "mixing": "often"}, "mixing is 'often'"),
        ({"name": "a", "by_name": {"en": {"share": True}}}, "share is True"),
        ({"name": "a", "either": {"neither": 1}}, "either is"),
    ],
)
def test_what_was_changed_is_refused(stored: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        from_json(Outer, stored)

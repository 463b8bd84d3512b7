"""--set NAME=VALUE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from bilex import BilexError
from bilex.aligners.procrustes import Procrustes
from bilex.cli.align import parse_settings


@dataclass(kw_only=True, repr=False)
class Many(Procrustes):
    """A method with a setting of every type; nameless, so that it is in no list."""

    updates: int = 201
    two_words: int = 1
    rate: float = 1.5
    masked: bool = False
    start: Literal["identical", "numerals"] = "identical"
    limit: int | None = None
    weight: float | Literal["auto"] = 0.2
    ranks: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("updates=50", 50),
        ("updates=20_000", 20000),
        ("rate=2", 2.0),
        ("rate=1e-3", 0.001),
        ("masked=yes", True),
        ("masked=False", False),
        ("start=numerals", "numerals"),
        ("limit=none", None),
        ("limit=7", 7),
        ("weight=auto", "auto"),
        ("weight=0.4", 0.4),
        ("ranks=1,5", (1, 5)),
        ("device=cpu", "cpu"),
    ],
)
def test_values_have_the_type_of_their_setting(text: str, value: Any) -> None:
    settings = parse_settings(Many, [text])
    found = settings[text.split("=", maxsplit=1)[0]]
    assert found == value and type(found) is type(value)
    assert Many(**settings)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("updates", "NAME=VALUE"),
        ("update=3", "Did you mean 'updates'"),
        ("updates=many", "is 'many'; it must be a whole number"),
        ("updates=1.5", "must be a whole number"),
        ("masked=", "must be true or false"),
        ("masked=_", "must be true or false"),
        ("masked=t", "must be true or false"),
        ("rate=fast", "is 'fast'; it must be a number"),
        ("masked=perhaps", "must be true or false"),
        ("start=letters", "must be identical or numerals"),
        ("weight=some", "is 'some'; it must be a number or auto"),
        ("source_map_=1", "no setting"),
    ],
)
def test_faults_are_reported(text: str, part: str) -> None:
    with pytest.raises(BilexError, match=part):
        parse_settings(Many, [text])


def test_dashes_are_underscores() -> None:
    assert parse_settings(Many, ["two-words=3"]) == {"two_words": 3}
    with pytest.raises(BilexError, match="no setting 'no_such'"):
        parse_settings(Procrustes, ["no-such=1"])

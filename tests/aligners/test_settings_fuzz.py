"""Every setting of every method, with values of wrong kinds and extremes: a finite map, or one sentence."""

from __future__ import annotations

import math
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from c1_worlds import World

from bilex.aligners import get_method, methods
from bilex.core.errors import BilexError

HANGS_AFTER = 120
SMALL: dict[str, dict[str, Any]] = {
    "c1": {"iterations": 1, "updates": 2},
    "rcsls": {"iterations": 2},
    "lnmap": {
        "hidden": 8,
        "latent": 6,
        "autoencoder_epochs": 1,
        "autoencoder_samples": 50,
        "mapper_epochs": 1,
        "rounds": 1,
    },
    **{
        name: {"patience": 1, "frequent": 40}
        for name in ("vecmap-semi", "vecmap-identical", "vecmap-unsupervised")
    },
}
NUMBERS = (-1, 0, 1, 2, -0.5, 0.5, 1e-30, 1e30, math.nan, math.inf, -math.inf, 10**30)
OTHERS = ("", "x", None, True, False, [], b"1", (1, 2), np.float64(0.5))
# Work that grows with the number is not asked for in earnest; whether such a number is taken is not at stake.
LONG = (
    "iterations",
    "updates",
    "rounds",
    "autoencoder",
    "mapper_epochs",
    "patience",
    "warm_up",
)


@contextmanager
def not_for_ever(what: str) -> Iterator[None]:
    def too_long(*_: object) -> None:
        pytest.fail(f"{what} did not end")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(HANGS_AFTER)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", sorted(methods()))
def test_every_setting_of_a_method_works_or_is_refused_in_one_sentence(name: str) -> None:
    method = get_method(name)
    world = World(words=80, dim=6)
    small = {key: value for key, value in SMALL.get(name, {}).items() if key in method.settings_fields()}
    refused = fitted = 0
    for setting in method.settings_fields():
        for value in (*NUMBERS, *OTHERS):
            if setting.startswith(LONG) and isinstance(value, (int, float)) and value > 2:
                continue
            settings = {"device": "cpu", **small, setting: value}
            with not_for_ever(f"{name} with {setting}={value!r}"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    aligner = method(**settings)
                    world.fit(aligner, 40)
                except BilexError as error:
                    assert "\n" not in str(error)
                    refused += 1
                    continue
            fitted += 1
            for mapped in (
                aligner.source_map_(world.source.vectors[:]),
                aligner.target_map_(world.target.vectors[:]),
            ):
                assert np.isfinite(mapped).all(), f"{name} with {setting}={value!r}"
    assert refused > 10 and (fitted > 0 or name == "vecmap-identical")  # the world has no identical words


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("c1", "temperature", 0),
        ("fipp", "pairs", 0),
        ("procrustes", "seed", -1),
        ("vecmap-semi", "keep", math.nan),
        ("vecmap-semi", "keep", 0),
        ("vecmap-semi", "growth", 1.0),
        ("vecmap-semi", "threshold", -1.0),
    ],
)
def test_settings_that_made_trouble_are_refused_by_name(name: str, setting: str, value: float) -> None:
    with pytest.raises(BilexError, match=f"setting '{setting}' of {name} is"):
        World(words=50, dim=4).fit(get_method(name)(device="cpu", **{setting: value}), 20)

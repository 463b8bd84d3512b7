"""One setup of a benchmark: what is fitted on what, and with which settings.

A setup is plain data, so that it can be compared, stored, sent to another machine and shown. Setups that
differ only in what is built on a fitted aligner (language model, λ) are of one family: the aligner is
fitted once for all of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from bilex.core.text import escape_control_characters

Mixing = float | Literal["auto"]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What one row of a results file is about.

    Args:
        dataset: The name of the data folder in the grid.
        pair: Source and target language, such as "en-ru"; both directions are scored.
        seeds: The name of the seed dictionary, such as "5k" or "1k"; "0" for none.
        method: The name of an aligner.
        settings: The aligner's settings that differ from its defaults.
        limit: How many of the most frequent words of each language are read; None for all.
        seed: The random seed of methods that need one.
        lm: The language model of stage C2; None for the aligner alone.
        tune: Whether that model is tuned; False combines it as it is.
        tuning: The settings of tuning that differ from the model's preset.
        mixing: λ, the weight of the language model, 1 being the model alone, or "auto"; None without a model.
        label: The name in tables. It says nothing that the other fields do not, and is no part of `key`.
    """

    dataset: str
    pair: str
    seeds: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None
    seed: int = 0
    lm: str | None = None
    tune: bool = True
    tuning: Mapping[str, Any] = field(default_factory=dict)
    mixing: Mixing | None = None
    label: str = ""

    def __post_init__(self) -> None:
        # Grids and results files come from others; on a terminal and in tables their labels are one line.
        object.__setattr__(self, "label", escape_control_characters(" ".join(self.label.split())))

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        source, _, target = self.pair.partition("-")
        return source, target

    @property
    def key(self) -> str:
        """A name for everything that the result depends on: equal keys, equal experiments."""
        return _digest(self._family_content(), self.lm, self.tune, dict(self.tuning), self.mixing)

    @property
    def family(self) -> str:
        """A name for what the aligner's fit depends on."""
        return _digest(self._family_content())

    @property
    def stage(self) -> str | None:
        """A name for what stage C2 depends on, λ left out; None without a language model."""
        if self.lm is None:
            return None
        return _digest(self._family_content(), self.lm, self.tune, dict(self.tuning))

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain values, ready for JSON."""
        return asdict(self)

    def sentence(self) -> str:
        """The setup in a few words, for progress and errors."""
        words = [self.label or self.method, self.pair, f"{self.seeds} seeds"]
        if self.lm is not None:
            words.append(f"{self.lm}{'' if self.tune else ' not tuned'}, λ = {self.mixing}")
        return ", ".join(words)

    def _family_content(self) -> list[Any]:
        settings = dict(self.settings)
        return [self.dataset, self.pair, self.seeds, self.method, settings, self.limit, self.seed]


def families(setups: Iterable[Setup]) -> list[list[Setup]]:
    """Setups grouped by what they share, in order of first appearance: the unit of work of a runner."""
    found: dict[str, list[Setup]] = {}
    for setup in setups:
        found.setdefault(setup.family, []).append(setup)
    return list(found.values())


def _digest(*content: Any) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]

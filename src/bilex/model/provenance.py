"""From what and how a model was made: what its folder and its card say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bilex.core.languages import language_name
from bilex.fit.report import FitReport
from bilex.fit.settings import Recipe
from bilex.model.space import Direction


@dataclass(frozen=True, kw_only=True)
class Retrained:
    """What a model learned after its fit, from decisions of people.

    Attributes:
        rounds: How often it was retrained.
        accepted: Pairs that were accepted by the last time.
        rejected: Pairs that were rejected.
    """

    rounds: int
    accepted: int
    rejected: int


@dataclass(frozen=True, kw_only=True)
class Provenance(FitReport):
    """The report of a model's fit, and what the model knows beside it.

    Attributes:
        recipe: What was asked for; None where the model was not made from a recipe.
        source_language: The code of the source language; None where it is not known.
        target_language: Likewise.
        composed: Phrases of the seeds that were added to each vocabulary, composed of their words.
        retrained: What came after the fit; None where nothing did.
        recalibrated: How an audit changed the confidences, as the workbench recorded it; empty if none did.
    """

    recipe: Recipe | None = None
    source_language: str | None = None
    target_language: str | None = None
    composed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    retrained: Retrained | None = None
    recalibrated: Mapping[str, Any] = field(default_factory=dict)

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The codes of both languages, as far as they are known."""
        return self.source_language, self.target_language

    def language_names(self, direction: Direction = "forward") -> tuple[str, str]:
        """The names of the query and the key language; "source" and "target" where they are not known."""
        source = language_name(self.source_language) if self.source_language else "source"
        target = language_name(self.target_language) if self.target_language else "target"
        return (source, target) if direction == "forward" else (target, source)

    def as_dict(self) -> dict[str, Any]:
        """For JSON, without what there is not."""
        stored = super().as_dict()
        optional = ("recipe", "composed", "retrained", "recalibrated")
        absent = [name for name in optional if not getattr(self, name)]
        return {name: value for name, value in stored.items() if name not in absent}

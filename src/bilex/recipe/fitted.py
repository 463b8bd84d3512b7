"""The result of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bilex.aligners.base import Aligner
from bilex.aligners.maps import Linear, Map, Unit
from bilex.lexicon import Lexicon
from bilex.recipe.calibration import Calibration
from bilex.recipe.report import FitReport
from bilex.recipe.settings import Recipe
from bilex.space import Space

if TYPE_CHECKING:
    from bilex.encoders.combine import Combination
    from bilex.encoders.model import WordEncoder
    from bilex.encoders.stage import StageResult


@dataclass(frozen=True, eq=False)
class Fitted:
    """Two vocabularies in one space, how to get there, and what is known about it.

    Attributes:
        recipe: What was asked for.
        aligner: The fitted aligner.
        space: Both vocabularies in one space: the aligner's, or with a language model the combined one.
        stage: What stage C2 made; None without a language model.
        calibration: Confidences, or a note why there are none.
        report: What it was made from, how, and how well it does.
        seeds: The pairs it was learned from, and the rejected ones.
    """

    recipe: Recipe
    aligner: Aligner
    space: Space
    stage: StageResult | None
    calibration: Calibration
    report: FitReport
    seeds: Lexicon

    @property
    def source_map(self) -> Map:
        """Takes source vectors, as they come from their file, into the space.

        With a language model it takes their static part there, and knows nothing of the encoder's.
        """
        return self._into_space(self.aligner.source_map_)

    @property
    def target_map(self) -> Map:
        """Likewise for the target language."""
        return self._into_space(self.aligner.target_map_)

    def _into_space(self, into: Map) -> Map:
        if self.combination is None:
            return into
        return Map([*into.steps, Unit(), Linear(self.combination.static_map), Unit()])

    @property
    def combination(self) -> Combination | None:
        """How static vectors and the encoder's become one; None without a language model."""
        return None if self.stage is None else self.stage.combination

    @property
    def encoder(self) -> WordEncoder | None:
        """The tuned language model; None without one."""
        return None if self.stage is None else self.stage.encoder

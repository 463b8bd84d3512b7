"""The result of a fit, which saves and loads itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bilex.aligners.base import Aligner
from bilex.aligners.maps import Linear, Map, Unit, maps_from_state, maps_state
from bilex.core.errors import BilexError
from bilex.core.files import read_json, write_json
from bilex.core.manifest import manifest_folder, verify_manifest
from bilex.fit.calibration import Calibration
from bilex.fit.report import FitReport
from bilex.fit.settings import Recipe
from bilex.lexicon import Lexicon
from bilex.model.space import Space
from bilex.vectors import WordVectors

if TYPE_CHECKING:
    from bilex.encoders.combine import Combination
    from bilex.encoders.model import WordEncoder
    from bilex.encoders.presets import Precision
    from bilex.encoders.report import StageReport
    from bilex.encoders.stage import StageResult

_KIND = "bilex-fitted-1"
_ABOUT, _MAPS, _COMBINATION, _ENCODER = (
    "fitted.json",
    "maps.safetensors",
    "combination.safetensors",
    "encoder",
)


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

    def save(self, folder: str | Path) -> None:
        """Write a folder that `load` opens, all of it or nothing; the vocabularies are not in it.

        An earlier one is replaced; a folder that is not one of ours never is. `Translator.save` writes a
        model that stands by itself.

        Raises:
            BilexError: The folder cannot be written.
        """
        from safetensors.numpy import save_file

        kinds, tensors = maps_state(self.aligner.source_map_, self.aligner.target_map_)
        about = {
            **kinds,
            "recipe": self.recipe.as_dict(),
            "calibration": self.calibration.as_dict(),
            "report": self.report.as_dict(),
            "seeds": {
                "name": self.seeds.name,
                "pairs": list(self.seeds.pairs),
                "rejected": list(self.seeds.rejected),
            },
        }
        with manifest_folder(folder, _KIND) as path:
            save_file(tensors, path / _MAPS)
            write_json(path / _ABOUT, about)
            if self.stage is not None:
                save_file(self.stage.combination.state(), path / _COMBINATION)
                self.stage.save_encoder(path / _ENCODER)

    @classmethod
    def load(
        cls, folder: str | Path, source: WordVectors, target: WordVectors, *, device: str = "auto"
    ) -> Fitted:
        """Open what `save` wrote, over the vectors that it was fitted on.

        Args:
            folder: The folder.
            source: The source vectors; with a language model every word is encoded again.
            target: The target vectors.
            device: Where to compute.

        Raises:
            BilexError: There is no such folder, it was damaged, or the vectors are others.
        """
        from safetensors.numpy import load_file

        path = Path(folder)
        if not verify_manifest(path, _KIND):
            raise BilexError(f"{path}: there is no fitted recipe; make one with bilex.fit.fit.")
        about = read_json(path / _ABOUT)
        recipe = Recipe.from_dict(about["recipe"])
        aligner = recipe.aligner()
        report = FitReport.from_dict(about["report"], aligner.report_type())
        if (source.dim, target.dim) != (report.source_dim, report.target_dim):
            raise BilexError(
                f"{path}: was fitted on vectors of dimension {report.source_dim} and {report.target_dim}, "
                f"not {source.dim} and {target.dim}; give the same vectors."
            )
        for name, value in report.settings.items():
            setattr(aligner, name, device if name == "device" else value)
        aligner.source_map_, aligner.target_map_ = maps_from_state(about, load_file(path / _MAPS))
        aligner.report_ = report.report
        stage = None
        if report.language_model is None:
            space = Space.from_aligner(aligner, source, target)
        else:
            tuning = report.language_model.tuning or recipe.tuning_settings
            precision = tuning.precision if tuning is not None else "auto"
            stage = _stage(path, aligner, source, target, report.language_model, precision, device)
            space = Space(stage.source, stage.target, "cosine", device)
        seeds = about["seeds"]
        known = Lexicon(
            [(str(a), str(b)) for a, b in seeds["pairs"]],
            str(seeds["name"]),
            rejected=tuple((str(a), str(b)) for a, b in seeds["rejected"]),
        )
        calibration = Calibration.from_dict(about["calibration"])
        return cls(recipe, aligner, space, stage, calibration, report, known)


def _stage(
    path: Path,
    aligner: Aligner,
    source: WordVectors,
    target: WordVectors,
    report: StageReport,
    precision: Precision,
    device: str,
) -> StageResult:
    """Stage C2 from its stored encoder and combination."""
    from safetensors.numpy import load_file

    from bilex.encoders.combine import Combination, aligned_views, unit_rows
    from bilex.encoders.model import WordEncoder
    from bilex.encoders.stage import StageResult

    encoder = WordEncoder.load(path / _ENCODER, device=device)
    combination = Combination.from_state(load_file(path / _COMBINATION))
    words = (source.index_to_key, target.index_to_key)
    static = aligned_views(aligner, source, target)
    raw = [encoder.encode(side, precision=precision) for side in words]
    encoded = (unit_rows(raw[0]), unit_rows(raw[1]))
    both = combination.vocabularies(words, static, encoded)
    return StageResult(encoder, combination, static, encoded, *both, report)
